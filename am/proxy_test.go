package am_test

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
)

const nginxConf = `
daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path %[1]s/body;
    proxy_temp_path %[1]s/proxy;
    fastcgi_temp_path %[1]s/fastcgi;
    uwsgi_temp_path %[1]s/uwsgi;
    scgi_temp_path %[1]s/scgi;
    server {
        listen %[2]s ssl;
        ssl_certificate %[1]s/server.pem;
        ssl_certificate_key %[1]s/server-key.pem;
        ssl_verify_client optional_no_ca;
        client_max_body_size 20m;
        location / {
            proxy_pass %[3]s;
            proxy_set_header Host $http_host;
            proxy_set_header X-Client-Cert $ssl_client_escaped_cert;
        }
    }
}
`

const haproxyConf = `
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend am
    bind %[2]s ssl crt %[1]s/both.pem ca-file %[1]s/ca.pem verify optional ca-ignore-err all crt-ignore-err all
    http-request set-header X-Client-Cert %%[ssl_c_der,base64]
    default_backend croft
backend croft
    server croft %[3]s
`

// Behind real reverse proxies: whose certificate is good gets in, whose is not
// is told so by Croft, and a header of the client's own says nothing.
func TestReverseProxies(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(b *bed, dir, address string) *exec.Cmd{
		"nginx": func(b *bed, dir, address string) *exec.Cmd {
			file := filepath.Join(dir, "nginx.conf")
			writeFile(b, file, []byte(fmt.Sprintf(nginxConf, dir, address, b.front)))
			return exec.Command("nginx", "-c", file, "-p", dir, "-e", "stderr")
		},
		"haproxy": func(b *bed, dir, address string) *exec.Cmd {
			file := filepath.Join(dir, "haproxy.cfg")
			writeFile(b, file, []byte(fmt.Sprintf(haproxyConf, dir, address, strings.TrimPrefix(b.front, "http://"))))
			return exec.Command("haproxy", "-db", "-f", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("needs %s (apt-get install %s)", name, map[string]string{"nginx": "nginx-light", "haproxy": "haproxy"}[name])
			}
			b := newBed(t, settings{})
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			certificate, key := read(t, "pki/server.pem"), read(t, "pki/server-key.pem")
			writeFile(t, filepath.Join(dir, "server.pem"), certificate)
			writeFile(t, filepath.Join(dir, "server-key.pem"), key)
			writeFile(t, filepath.Join(dir, "both.pem"), append(bytes.Clone(certificate), key...))
			writeFile(t, filepath.Join(dir, "ca.pem"), read(t, "trusted/ca.pem"))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := l.Addr().String()
			l.Close()
			cmd := run(b, dir, address)
			var said surroundings.Log
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() {
				cmd.Process.Signal(syscall.SIGTERM)
				<-ended
				if t.Failed() {
					t.Logf("%s says:\n%s", name, said.String())
				}
			})
			for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
				if conn, err := net.Dial("tcp", address); err == nil {
					conn.Close()
					break
				}
				select {
				case err := <-ended:
					ended <- err
					t.Fatalf("it does not start: %v", err)
				default:
				}
				if time.Now().After(deadline) {
					t.Fatal("it does not listen")
				}
			}
			foreign := stranger(t)
			emulab := issue(t, func(c *x509.Certificate) { c.ExtraExtensions = append(c.ExtraExtensions, emulabAIA(t)) })
			alice := identity{read(t, "members/alice/cert.pem"), read(t, "members/alice/key.pem")}
			for _, test := range []struct {
				name string
				identity
				code int
			}{
				{"alice", alice, 0},
				{"Emulab's kind", emulab, 0},
				{"a stranger", foreign, 3},
				{"nobody", identity{}, 3},
			} {
				t.Run(test.name, func(t *testing.T) {
					u := b.at(address, "/am/3.0", test.certificate, test.key, test.name)
					u.rpc.HTTP.Transport = forged{u.rpc.HTTP.Transport, string(alice.certificate)}
					u.want(test.code, "GetVersion")
				})
			}
		})
	}
}

// forged sends a header of its own with every request.
type forged struct {
	http.RoundTripper
	certificate string
}

func (f forged) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(frontHeader, strings.Join(strings.Fields(f.certificate), "\t"))
	return f.RoundTripper.RoundTrip(r)
}
