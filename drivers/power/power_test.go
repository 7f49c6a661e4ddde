package power_test

import (
	"context"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/drivers/power"
	"croft/drivers/ssh/sshtest"
)

// button is a machine that is nothing but a power button.
type button struct {
	mu sync.Mutex
	on bool
}

func (b *button) On() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on
}

func (b *button) PowerOn() error { b.set(true); return nil }
func (b *button) PowerOff()      { b.set(false) }

func (b *button) set(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on = on
}

func passwordFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func open(t *testing.T, c power.Config) power.Controller {
	t.Helper()
	p, err := power.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func context20(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// exercise is what every controller must do.
func exercise(t *testing.T, p power.Controller, b *button) {
	t.Helper()
	ctx := context20(t)
	for _, step := range []struct {
		action power.Action
		want   bool
	}{{power.TurnOn, true}, {power.Cycle, true}, {power.TurnOff, false}, {power.TurnOn, true}, {power.TurnOff, false}} {
		if err := p.Do(ctx, step.action); err != nil {
			t.Fatalf("%s: %v", step.action, err)
		}
		// Controllers take their time.
		deadline := time.Now().Add(10 * time.Second)
		for b.On() != step.want && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		if got := b.On(); got != step.want {
			t.Errorf("after %s the machine is on: %v", step.action, got)
		}
		if on, err := p.On(ctx); err != nil || on != step.want {
			t.Errorf("after %s the controller says %v, %v", step.action, on, err)
		}
	}
	if err := p.Do(ctx, "explode"); err == nil {
		t.Error("an action that does not exist: done")
	}
}

func TestRedfish(t *testing.T) {
	b := &button{}
	service := &sshtest.Redfish{Machine: b, User: "croft", Password: "secret"}
	server := httptest.NewServer(service)
	defer server.Close()
	c := power.Config{Protocol: power.Redfish, Address: server.URL, User: "croft", PasswordFile: passwordFile(t, "secret\n")}
	p := open(t, c)
	exercise(t, p, b)
	if got, want := service.Done(), []string{"On", "PowerCycle", "ForceOff", "On", "ForceOff"}; !slices.Equal(got, want) {
		t.Errorf("resets %q, want %q", got, want)
	}
	if err := p.BootFromNetwork(context20(t)); err != nil {
		t.Fatal(err)
	}
	if got := service.NextBoot(); got != "Pxe" {
		t.Errorf("the next boot is from %s", got)
	}
	named := c
	named.System = "/redfish/v1/Systems/1"
	if on, err := open(t, named).On(context20(t)); err != nil || on {
		t.Errorf("a system that is named: %v, %v", on, err)
	}
	service.Resets = []string{"On", "ForceOff", "ForceRestart"}
	b.set(true)
	if err := p.Do(context20(t), power.Cycle); err != nil || !slices.Contains(service.Done(), "ForceRestart") {
		t.Errorf("a system that knows no PowerCycle: %v, %q", err, service.Done())
	}
	for name, try := range map[string]struct {
		change func(*power.Config)
		want   string
	}{
		"wrong password": {func(c *power.Config) { c.PasswordFile = passwordFile(t, "other") }, "401 Unauthorized: the user name or the password is wrong (see user and password_file)"},
		"no such system": {func(c *power.Config) { c.System = "/redfish/v1/Systems/2" }, "404 Not Found: there is no resource"},
		"other host":     {func(c *power.Config) { c.System = "http://other.example.org/x" }, "is no path of the service"},
		"nobody there":   {func(c *power.Config) { c.Address = "http://127.0.0.1:1" }, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := c
			try.change(&bad)
			if _, err := open(t, bad).On(context20(t)); err == nil || !strings.Contains(err.Error(), try.want) {
				t.Errorf("got %v, want %q", err, try.want)
			}
		})
	}
}

func TestRedfishTLS(t *testing.T) {
	service := &sshtest.Redfish{Machine: &button{}, User: "croft", Password: "secret"}
	server := httptest.NewTLSServer(service)
	defer server.Close()
	c := power.Config{Protocol: power.Redfish, Address: server.URL, User: "croft", PasswordFile: passwordFile(t, "secret")}
	if _, err := open(t, c).On(context20(t)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of nobody's: %v", err)
	}
	c.AuthorityFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(c.AuthorityFile, pemOf(server.Certificate().Raw), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, c).On(context20(t)); err != nil {
		t.Errorf("with the authority: %v", err)
	}
}

// The simulator is judged by a client that is not ours.
func TestRedfishtool(t *testing.T) {
	tool, err := exec.LookPath("redfishtool")
	if err != nil {
		t.Skip("SKIPPED: redfishtool is not installed (apt-get install redfishtool)")
	}
	b := &button{}
	service := &sshtest.Redfish{Machine: b, User: "croft", Password: "secret"}
	server := httptest.NewServer(service)
	defer server.Close()
	run := func(args ...string) string {
		t.Helper()
		args = append([]string{"-r", strings.TrimPrefix(server.URL, "http://"), "-u", "croft", "-p", "secret", "-S", "Never", "-A", "Basic"}, args...)
		out, err := exec.CommandContext(context20(t), tool, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("redfishtool %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := run("Systems", "-F", "get"); !strings.Contains(out, `"PowerState": "Off"`) {
		t.Errorf("redfishtool sees\n%s", out)
	}
	run("Systems", "-F", "reset", "On")
	if !b.On() {
		t.Error("redfishtool did not turn it on")
	}
	run("Systems", "-F", "setBootOverride", "Once", "Pxe")
	if got := service.NextBoot(); got != "Pxe" {
		t.Errorf("after redfishtool the next boot is from %s", got)
	}
}

func TestIPMI(t *testing.T) {
	b := &button{}
	s := sshtest.NewIPMI(t, b)
	c := power.Config{Protocol: power.IPMI, Address: s.Address, User: s.User, PasswordFile: passwordFile(t, s.Password)}
	p := open(t, c)
	exercise(t, p, b)
	if err := p.BootFromNetwork(context20(t)); err != nil {
		t.Fatal(err)
	}
	if calls := s.Calls(); !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "set boot") }) {
		t.Errorf("the boot device was not set: %q", calls)
	}
	c.PasswordFile = passwordFile(t, "other")
	if _, err := open(t, c).On(context20(t)); err == nil {
		t.Error("a wrong password: let in")
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, try := range map[string]struct {
		c    power.Config
		want string
	}{
		"protocol":         {power.Config{Protocol: "snmp"}, `protocol "snmp" is neither ipmi nor redfish`},
		"no password file": {power.Config{Protocol: power.IPMI, Address: "x", PasswordFile: "/nonexistent"}, "no such file"},
		"empty password":   {power.Config{Protocol: power.IPMI, Address: "x", PasswordFile: passwordFile(t, "\n")}, "is empty"},
		"no port":          {power.Config{Protocol: power.IPMI, Address: "x:y"}, "is not HOST:PORT"},
		"no host":          {power.Config{Protocol: power.IPMI}, "no address"},
		"no URL":           {power.Config{Protocol: power.Redfish, Address: "ftp://x"}, "is not the URL of a Redfish service"},
		"no certificate":   {power.Config{Protocol: power.Redfish, Address: "x", AuthorityFile: passwordFile(t, "x")}, "has no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := power.Open(try.c); err == nil || !strings.Contains(err.Error(), try.want) {
				t.Errorf("got %v, want %q", err, try.want)
			}
		})
	}
}
