package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// zoeClient is a checkout of Zoe's command line client.
type zoeClient struct {
	*testing.T
	dir string
	env []string
}

// run runs one command of the client.
func (z *zoeClient) run(args ...string) string {
	z.Helper()
	ctx, cancel := context.WithTimeout(z.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "/usr/bin/python3", append([]string{"zoe.py"}, args...)...)
	c.Dir, c.Env = z.dir, append(os.Environ(), z.env...)
	begun := time.Now()
	out, err := c.CombinedOutput()
	z.Logf("$ zoe.py %s (%s)\n%s", strings.Join(args, " "), time.Since(begun).Round(time.Millisecond), out)
	if err != nil {
		z.Fatalf("zoe.py %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// until runs a command until its output matches, and returns the match.
func (z *zoeClient) until(pattern string, args ...string) []string {
	z.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(time.Minute); ; {
		out := z.run(args...)
		if m := re.FindStringSubmatch(out); m != nil {
			return m
		}
		if time.Now().After(end) {
			z.Fatalf("zoe.py %s never says %s", strings.Join(args, " "), pattern)
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-z.Context().Done():
			z.Fatal("too late")
		}
	}
}

// busyboxImage is a directory image of nothing but busybox, which serves HTTP.
func busyboxImage(t *testing.T) string {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("SKIPPED: no busybox (scripts/setup test)")
	}
	dir := filepath.Join(t.TempDir(), "image")
	for _, d := range []string{"bin", "etc", "root", "tmp", "var/lib", "usr/bin", "srv"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]struct {
		text []byte
		mode os.FileMode
	}{
		"bin/busybox":    {program, 0o755},
		"etc/passwd":     {[]byte("root:x:0:0:root:/root:/bin/sh\n"), 0o644},
		"etc/group":      {[]byte("root:x:0:\n"), 0o644},
		"srv/index.html": {[]byte("served by the image\n"), 0o644},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), file.text, file.mode); err != nil {
			t.Fatal(err)
		}
	}
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(applets)) {
		if name != "busybox" {
			if err := os.Symlink("busybox", filepath.Join(dir, "bin", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

const zoePassword = "a password for tests"

// zoeServer builds croft and has it serve nodes of a directory image.
func zoeServer(t *testing.T) (url, certificate string) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: nodes need root")
	}
	work := t.TempDir()
	program, dir := filepath.Join(work, "croft"), filepath.Join(work, "data")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	must := func(stdin string, args ...string) string {
		c := exec.Command(program, args...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("croft %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	listen := free()
	must("", "init", "--dir", dir, "--authority", "example.org", "--listen", "127.0.0.1:"+listen[strings.LastIndex(listen, ":")+1:])
	hash := strings.TrimSpace(must(zoePassword+"\n", "account", "hash"))
	replace(t, filepath.Join(dir, "inventory.yaml"), fmt.Sprintf(`authority: example.org
images:
  - name: web
    source: %s
    url: registry:5000/zapps/web:1
    command: "echo serving for $OWNER in $EXECUTION; exec httpd -f -v -p 8080 -h /srv"
sliver_types:
  - {name: namespace, cores: 0.1, memory: 64MiB, images: [web]}
hosts:
  - {name: host1, sliver_types: [namespace], cores: 1, memory: 256MiB, shared: true}
`, busyboxImage(t)))
	at := free()
	conf := filepath.Join(dir, "croft.yaml")
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	// Who else runs on this machine may have the gateway's port.
	direct := regexp.MustCompile(`(?m)^  ways: \w+`).ReplaceAllString(string(text), "  ways: direct")
	replace(t, conf, direct+fmt.Sprintf(`
rest:
  listen: %s
  accounts:
    - {name: alice, password: '%s', member: urn:publicid:IDN+example.org+user+alice}
`, at, hash))
	var log bytes.Buffer
	server := exec.Command(program, "serve", "--dir", dir)
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("croft serve: %v", err)
			}
		case <-time.After(30 * time.Second):
			_ = server.Process.Kill()
			t.Error("croft serve does not end")
			<-ended
		}
		if t.Failed() {
			t.Logf("the server says:\n%s", log.String())
		}
	})
	for end := time.Now().Add(30 * time.Second); ; {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("croft serve ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatal("croft serve does not listen")
		}
	}
	return "https://" + at + "/zoe", filepath.Join(dir, "trusted")
}

func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	zapp2 = `{"name": "web", "version": 2, "will_end": false, "priority": 512, "requires_binary": false, "services": [
  {"name": "web", "docker_image": "registry:5000/zapps/web:1", "monitor": true, "total_count": 1, "essential_count": 1, "startup_order": 0,
   "required_resources": {"memory": 67108864, "cores": 0.1}, "environment": [["OWNER", "{user_name}"], ["EXECUTION", "{execution_name}"]],
   "ports": [{"name": "page", "protocol": "http", "port_number": 8080, "path": "/", "is_main_endpoint": true}]}]}`
	zapp3 = `{"name": "web", "version": 3, "will_end": false, "size": 512, "services": [
  {"name": "web", "image": "registry:5000/zapps/web:1", "monitor": true, "total_count": 2, "essential_count": 1, "startup_order": 0, "command": null,
   "resources": {"memory": {"min": 67108864, "max": null}, "cores": {"min": 0.1, "max": null}}, "volumes": [],
   "environment": [["OWNER", "{user_name}"], ["EXECUTION", "{execution_name}"]],
   "ports": [{"name": "page", "protocol": "tcp", "port_number": 8080, "url_template": "http://{ip_port}/", "proxy": false}]}]}`
)

// TestZoeClients has Zoe's own command line clients, of both generations, start
// a ZApp on nodes of a directory image. CROFT_ZOE names a clone of
// DistributedSystemsGroup/zoe.
func TestZoeClients(t *testing.T) {
	clone := os.Getenv("CROFT_ZOE")
	if clone == "" {
		t.Skip("SKIPPED: CROFT_ZOE does not name a clone of DistributedSystemsGroup/zoe")
	}
	if err := exec.Command("/usr/bin/python3", "-c", "import requests, tabulate").Run(); err != nil {
		t.Skip("SKIPPED: no python3-requests and python3-tabulate (scripts/setup test)")
	}
	url, trusted := zoeServer(t)
	roots, err := filepath.Glob(filepath.Join(trusted, "*"))
	if err != nil || len(roots) == 0 {
		t.Fatal("no trusted certificates", err)
	}
	var bundle []byte
	for _, r := range roots {
		text, err := os.ReadFile(r)
		if err != nil {
			t.Fatal(err)
		}
		bundle = append(bundle, text...)
	}
	root := filepath.Join(t.TempDir(), "roots.pem")
	replace(t, root, string(bundle))
	for _, x := range []struct {
		tag, zapp string
		started   string
	}{
		{"2017.03", zapp2, `scheduled successfully with ID (\d+)`},
		{"2018.12", zapp3, `created successfully with ID (\d+)`},
	} {
		t.Run(x.tag, func(t *testing.T) {
			dir := t.TempDir()
			archive := exec.Command("sh", "-c", `git -C "$1" archive "$2" | tar -x -C "$3"`, "sh", clone, x.tag, dir)
			if out, err := archive.CombinedOutput(); err != nil {
				t.Fatalf("unpacking %s of %s: %v\n%s", x.tag, clone, err, out)
			}
			z := &zoeClient{T: t, dir: dir, env: []string{"ZOE_URL=" + url, "ZOE_USER=alice", "ZOE_PASS=" + zoePassword, "REQUESTS_CA_BUNDLE=" + root, "HOME=" + dir}}
			replace(t, filepath.Join(dir, "app.json"), x.zapp)

			z.until(`ZApp format version: +3`, "info")
			id := z.until(x.started, "start", "my-web", "app.json")[1]
			z.until(`(?i)status: running`, "exec-get", id)
			z.until(`my-web.*running|running.*my-web|my-web.*: running`, "exec-ls")
			z.until(`queue length: 0`, "stats")
			z.until(`"name": "web"`, "exec-app-get", id)
			if x.tag == "2018.12" {
				follow2018(z, id)
			} else {
				z.until(`backend status: started`, "exec-get", id)
			}
			if x.tag != "2018.12" {
				z.run("terminate", id)
			}
			z.until(`Status: terminated`, "exec-get", id)
			if out := z.run("terminate", id); !strings.Contains(out, "Execution is not running") {
				t.Errorf("a second time: %s", out)
			}
			if x.tag == "2017.03" {
				z.run("exec-rm", id)
				z.until(`Execution not found`, "exec-get", id)
			}
		})
	}
}

// follow2018 does what the client of 2018.12 can beyond the older one.
func follow2018(z *zoeClient, id string) {
	z.Helper()
	endpoint := z.until(`page \(web0\): (http://\S+)`, "exec-get", id)[1]
	service := z.until(`(\d+)\s+web0\s+true\s+active\s+started`, "exec-get", id)[1]
	z.until(`web1\s+false\s+active\s+started`, "exec-get", id)
	var page string
	for end := time.Now().Add(20 * time.Second); page == "" && time.Now().Before(end); {
		if r, err := http.Get(endpoint); err == nil {
			text, _ := io.ReadAll(r.Body)
			r.Body.Close()
			page = string(text)
		}
	}
	if page != "served by the image\n" {
		z.Errorf("%s says %q", endpoint, page)
	}
	// Logs are followed until the service ends.
	ctx, cancel := context.WithTimeout(z.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "/usr/bin/python3", "-u", "zoe.py", "logs", "-t", service)
	c.Dir, c.Env = z.dir, append(os.Environ(), z.env...)
	said, err := c.StdoutPipe()
	if err != nil {
		z.Fatal(err)
	}
	if err := c.Start(); err != nil {
		z.Fatal(err)
	}
	var log bytes.Buffer
	for buffer := make([]byte, 4096); !strings.Contains(log.String(), "serving for alice in my-web\n"); {
		n, err := said.Read(buffer)
		log.Write(buffer[:n])
		if err != nil {
			z.Errorf("the log ends with %v", err)
			break
		}
	}
	z.run("terminate", id)
	rest, _ := io.ReadAll(said)
	log.Write(rest)
	if err := c.Wait(); err != nil {
		z.Errorf("zoe.py logs: %v", err)
	}
	z.Logf("$ zoe.py logs -t %s\n%s", service, log.String())
	z.until(`Status: terminated`, "exec-get", id)
	z.until(`serving for alice in my-web`, "logs", service)

	// The end of the monitor is that of the execution; its log stays.
	replace(z.T, filepath.Join(z.dir, "job.json"), strings.Replace(zapp3, `"command": null`, `"command": "for i in 1 2 3; do echo part $i; sleep 1; done"`, 1))
	if out := z.run("start", "-s", "job", "job.json"); !strings.Contains(out, "part 3\n") || !strings.Contains(out, "Execution finished") {
		z.Errorf("a job: %s", out)
	}
	job := z.until(`(\d+) +job +\d+ +terminated`, "exec-ls", "--name", "job")[1]
	service = z.until(`(\d+)\s+web0\s+true\s+inactive\s+destroyed`, "exec-get", job)[1]
	z.until(`part 1\npart 2\npart 3\n`, "logs", service)

}
