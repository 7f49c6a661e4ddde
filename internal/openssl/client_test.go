package openssl

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAskedLater: a server that asks for the client's certificate only after
// the handshake, as Apache does for a directory.
func TestAskedLater(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skipf("python3 is not installed (apt-get install python3): %v", err)
	}
	root := issue(t, nil, ecKey(t), authority("root"))
	srv, alice := issue(t, root, ecKey(t), server), issue(t, root, rsaKey(t, 2048), member("alice"))
	dir := t.TempDir()
	path := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "-c", `
import socket, ssl, sys
cert, key, ca = sys.argv[1:]
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
c.load_cert_chain(cert, key)
c.load_verify_locations(ca)
c.post_handshake_auth = True
c.verify_mode = ssl.CERT_REQUIRED
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
conn = c.wrap_socket(s.accept()[0], server_side=True)
while b"\r\n\r\n" not in conn.recv(10000):
    pass
before = conn.getpeercert(True)
conn.verify_client_post_handshake()
conn.send(b"HTTP/1.1 200 OK\r\n\r\n")
conn.recv(1)
after = conn.getpeercert(True)
conn.send(b"before %d, after %d" % (bool(before), bool(after)))
conn.unwrap()
`, path("cert.pem", srv.pem()), path("key.pem", srv.keyPEM()), path("ca.pem", root.pem()))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	config := &ClientConfig{Roots: []*Certificate{root.cert(t)}, CertificatePEM: alice.pem(), KeyPEM: alice.keyPEM()}
	conn, err := config.DialTLSContext(ctx, "tcp", "127.0.0.1:"+strings.TrimSpace(port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len("HTTP/1.1 200 OK\r\n\r\n"))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	// The server reads our certificate with what we write next.
	if _, err := io.WriteString(conn, "x"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(conn)
	if err != nil || string(rest) != "before 0, after 1" {
		t.Errorf("%q, %v", rest, err)
	}
}
