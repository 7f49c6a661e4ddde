package am_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/internal/openssl"
	"croft/xmlrpc"
)

// Calls in the shapes of the field's clients, whole life cycles of them: how
// Python 2's xmlrpclib (omni), Python 3's with requests (geni-lib), Apache's
// XML-RPC (jFed) and Perl's RPC::XML write them, byte for byte, with fresh names
// and credentials put in.
func TestReplay(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/calls/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no recorded calls: %v", err)
	}
	b := newBed(t, settings{})
	for i, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			u := b.as("alice", "/am/2.0") // of which credentials are strings
			slice, creds := u.slice(fmt.Sprintf("replay%d", i))
			values := map[string]string{
				"host": b.address, "slice": slice, "credential": creds[0].(string), "user-credential": u.userCredentials()[0].(string),
				"rspec": nodes("a", "b"), "key": surroundings.NewKey(t), "tomorrow": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339),
			}
			files, err := filepath.Glob(filepath.Join(folder, "*.http"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no calls: %v", err)
			}
			for _, file := range files {
				replay(t, b, file, values)
			}
		})
	}
}

func replay(t *testing.T, b *bed, file string, values map[string]string) {
	t.Helper()
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, body, ok := strings.Cut(string(recorded), "\n\n")
	if !ok {
		t.Fatalf("%s: no body", file)
	}
	for name, value := range values {
		head = strings.ReplaceAll(head, "{{"+name+"}}", value)
		var escaped bytes.Buffer
		if err := xml.EscapeText(&escaped, []byte(value)); err != nil {
			t.Fatal(err)
		}
		body = strings.ReplaceAll(body, "{{"+name+"}}", escaped.String())
	}
	head = strings.ReplaceAll(head, "{{length}}", strconv.Itoa(len(body)))
	roots, err := openssl.ParsePEM(read(t, "trusted/ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	tls := &openssl.ClientConfig{CertificatePEM: read(t, "members/alice/cert.pem"), KeyPEM: read(t, "members/alice/key.pem"), Roots: roots}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := tls.DialTLSContext(ctx, "tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, strings.ReplaceAll(head, "\n", "\r\n")+"\r\n\r\n"+body); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	value, err := xmlrpc.DecodeResponse(answer, xmlrpc.Limits{})
	if err != nil {
		t.Errorf("%s: %d %v", file, resp.StatusCode, err)
		return
	}
	got := value.(m)
	code := got["code"].(m)
	if code["geni_code"] != 0 && code[":code"] != 0 {
		t.Errorf("%s: code %v: %v", file, code, got["output"])
	}
	if bytes.ContainsFunc(answer, func(r rune) bool { return r > 0x7e }) {
		t.Errorf("%s: the answer is not ASCII, which Python 2 makes unicode strings of", file)
	}
}
