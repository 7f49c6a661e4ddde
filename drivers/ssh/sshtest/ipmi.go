package sshtest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// IPMI is OpenIPMI's ipmi_sim with a machine's power button.
type IPMI struct {
	Address        string // host:port, UDP
	User, Password string

	mu    sync.Mutex
	calls []string
}

// Calls lists what the simulator has told the chassis.
func (s *IPMI) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

const emulator = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
`

const lan = `name "bmc"
set_working_mc 0x20
  startlan 1
    addr %s %s
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "%s 0x20"
  user 1 true  "" "" user 10 none md2 md5 straight
  user 2 true  "croft" "secret" admin 10 none md2 md5 straight
`

// chassis hands on what the simulator wants of the chassis: pairs of words
// after "get" or "set".
const chassis = `#!/bin/sh
shift
op=$1
shift
while [ $# -gt 0 ]; do
  if [ "$op" = get ]; then
    echo "$1:$(curl -fsS "%[1]s/get/$1")"
    shift
  else
    curl -fsS -X POST "%[1]s/set/$1/$2" >/dev/null
    shift 2
  fi
done
`

// NewIPMI starts the simulator. It ends with the test.
func NewIPMI(t testing.TB, m Powered) *IPMI {
	t.Helper()
	program, err := exec.LookPath("ipmi_sim")
	if err != nil {
		t.Skip("SKIPPED: ipmi_sim is not installed (apt-get install openipmi)")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed (apt-get install curl)")
	}
	s := &IPMI{User: "croft", Password: "secret"}
	boot := "none"
	hands := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		words := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		switch what := strings.Join(words, " "); {
		case what == "get power" && m.On():
			fmt.Fprint(w, "1")
		case what == "get boot":
			fmt.Fprint(w, boot)
		case words[0] == "get":
			fmt.Fprint(w, "0")
		case len(words) == 3:
			s.calls = append(s.calls, what)
			switch what {
			case "set power 1":
				err = m.PowerOn()
			case "set power 0":
				m.PowerOff()
			case "set reset 1":
				m.PowerOff()
				err = m.PowerOn()
			default:
				if words[1] == "boot" {
					boot = words[2]
				}
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
	}))
	t.Cleanup(hands.Close)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	script := write("chassis", fmt.Sprintf(chassis, hands.URL), 0o755)
	probe, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Address = probe.LocalAddr().String()
	probe.Close()
	host, port, _ := net.SplitHostPort(s.Address)
	conf, emu := write("lan.conf", fmt.Sprintf(lan, host, port, script), 0o600), write("emu", emulator, 0o600)
	cmd := exec.Command(program, "-n", "-c", conf, "-f", emu, "-s", dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("ipmi_sim said:\n%s", said.String())
		}
	})
	s.await(t, ended)
	return s
}

// await waits until the simulator answers a presence ping (ASF 2.0, 3.2.4.3).
func (s *IPMI) await(t testing.TB, ended <-chan struct{}) {
	t.Helper()
	c, err := net.Dial("udp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ping := []byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 0, 0, 0}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		select {
		case <-ended:
			t.Fatal("ipmi_sim ended at once")
		default:
		}
		c.Write(ping)
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := c.Read(make([]byte, 64)); err == nil && n > 0 {
			return
		}
	}
	t.Fatal("ipmi_sim does not answer")
}
