package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/federation"
	"croft/internal/openssl"
)

// identity is a certificate with its key, in files.
type identity struct{ cert, key string }

// issue issues a certificate with the key of the testbed's authority.
func (b *testbed) issue(change func(*x509.Certificate)) identity {
	b.Helper()
	signer, err := readPEM(filepath.Join(b.dir, "pki", "ca-key.pem"))
	if err != nil {
		b.Fatal(err)
	}
	caKey, err := x509.ParsePKCS8PrivateKey(signer)
	if err != nil {
		b.Fatal(err)
	}
	root, err := readPEM(b.root)
	if err != nil {
		b.Fatal(err)
	}
	ca, err := x509.ParseCertificate(root)
	if err != nil {
		b.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "somebody"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		URIs:         []*url.URL{{Scheme: "urn", Opaque: "publicid:IDN+" + authority + "+user+carol"}},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		b.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	id := identity{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for file, block := range map[string]*pem.Block{
		id.cert: {Type: "CERTIFICATE", Bytes: der}, id.key: {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return id
}

func readPEM(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM", file)
	}
	return block.Bytes, nil
}

// emulabAIA is the Authority Information Access extension of Emulab's
// authorities, whose method has an arc of 128 bits.
func emulabAIA(t testing.TB) pkix.Extension {
	t.Helper()
	arc, ok := new(big.Int).SetString("305821105408246119474742976030998643995", 10)
	if !ok {
		t.Fatal("no number")
	}
	method := []byte{2*40 + 25}
	var digits []byte
	for n := arc; n.Sign() > 0; n = new(big.Int).Rsh(n, 7) {
		digits = append([]byte{byte(new(big.Int).And(n, big.NewInt(0x7f)).Int64()) | 0x80}, digits...)
	}
	digits[len(digits)-1] &= 0x7f
	method = append(method, digits...)
	where := []byte("https://www.example.org/xmlrpc")
	tlv := func(tag byte, value []byte) []byte { return append([]byte{tag, byte(len(value))}, value...) }
	description := tlv(0x30, append(tlv(0x06, method), tlv(0x86, where)...))
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 1}, Value: tlv(0x30, description)}
}

// Who calls is found out from the certificate; who is nobody is told why.
func TestCallers(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	foreign := newFederation(t)
	_, _ = foreign.slice("exp"), b.slice("exp")
	alice := identity{filepath.Join(b.dir, "members/alice/cert.pem"), filepath.Join(b.dir, "members/alice/key.pem")}
	stranger := identity{filepath.Join(foreign.dir, "members/alice/cert.pem"), filepath.Join(foreign.dir, "members/alice/key.pem")}

	for _, version := range []string{"TLSv1_2", "TLSv1_3"} {
		p := startPython(t, b.url, alice.cert, alice.key, b.root, "--tls", version)
		p.must("GetVersion")
	}
	for _, path := range []string{"/", "/RPC2", "/am/3.0"} {
		p := startPython(t, strings.Replace(b.url, "/am/3.0", path, 1), alice.cert, alice.key, b.root)
		p.must("GetVersion")
		p.must("GetVersion") // on the same connection
	}

	emulab := b.issue(func(c *x509.Certificate) { c.ExtraExtensions = append(c.ExtraExtensions, emulabAIA(t)) })
	if der, err := readPEM(emulab.cert); err != nil {
		t.Fatal(err)
	} else if _, err := x509.ParseCertificate(der); err == nil {
		t.Error("Go reads the certificate: it is not like Emulab's")
	}
	p := startPython(t, b.url, emulab.cert, emulab.key, b.root)
	p.must("GetVersion")

	user := b.read("members", "alice", "user-credential.xml")
	for _, test := range []struct {
		name string
		identity
		why string
	}{
		{"of another federation", stranger, "trust"},
		{"expired", b.issue(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), "expired"},
		{"without a URN", b.issue(func(c *x509.Certificate) { c.URIs = nil }), "urn"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := startPython(t, b.url, test.cert, test.key, b.root)
			r := p.call("ListResources", sfa(user), options())
			if code, err := r.code(); err != nil || code != 3 {
				t.Errorf("code %d, %v, want 3", code, err)
			}
			if output, _ := r.Reply["output"].(string); !strings.Contains(strings.ToLower(output), test.why) {
				t.Errorf("output %q does not say %q", output, test.why)
			}
		})
	}
	t.Run("without a certificate", func(t *testing.T) {
		p := startPython(t, b.url, "", "", b.root)
		if r := p.call("GetVersion"); r.Error == "" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("somebody else's credential", func(t *testing.T) {
		p := startPython(t, b.url, emulab.cert, emulab.key, b.root)
		slice := "urn:publicid:IDN+" + authority + "+slice+exp"
		p.want(3, "Allocate", slice, sfa(b.read("slices", "exp", "credential-alice.xml")), request(t, "one-node.rspec"), map[string]any{})
	})
	t.Run("a root that is put into trusted", func(t *testing.T) {
		root, err := os.ReadFile(foreign.root)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.dir, "trusted", "other.pem"), root, 0o644); err != nil {
			t.Fatal(err)
		}
		p := startPython(t, b.url, stranger.cert, stranger.key, b.root)
		creds := sfa(foreign.read("members", "alice", "user-credential.xml"))
		b.await("the new root to count", func() bool {
			code, err := p.call("ListResources", creds, options()).code()
			if err != nil {
				t.Fatal(err)
			}
			return code == 0
		})
	})
}

const listMethods = `<?xml version="1.0"?><methodCall><methodName>ListResources</methodName><params>` +
	`<param><value><array><data><value><struct>` +
	`<member><name>geni_type</name><value><string>geni_sfa</string></value></member>` +
	`<member><name>geni_version</name><value><string>3</string></value></member>` +
	`<member><name>geni_value</name><value><string>%s</string></value></member>` +
	`</struct></value></data></array></value></param>` +
	`<param><value><struct><member><name>geni_rspec_version</name><value><struct>` +
	`<member><name>type</name><value><string>GENI</string></value></member>` +
	`<member><name>version</name><value><string>3</string></value></member>` +
	`</struct></value></member></struct></value></param></params></methodCall>`

// post sends a call and returns the body of the answer.
func post(t *testing.T, c *http.Client, address, user string, header http.Header) string {
	t.Helper()
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(user)
	req, err := http.NewRequest("POST", address, strings.NewReader(fmt.Sprintf(listMethods, escaped)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "text/xml")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

const success = "<name>geni_code</name><value><int>0</int></value>"

// Behind a proxy, one header says who calls; on the other listener it says
// nothing.
func TestFrontend(t *testing.T) {
	t.Parallel()
	b := newFederation(t, setting{"# frontend:\n#   network: unix          # or tcp, on a loopback address\n#   address: state/frontend.sock\n#   header: X-Client-Cert",
		"frontend:\n  network: unix\n  address: frontend.sock\n  header: X-Client-Cert"})
	b.start()
	user := b.read("members", "alice", "user-credential.xml")
	proxy := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(b.dir, "frontend.sock"))
	}}}
	escaped := func(file string) string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return url.PathEscape(string(data))
	}
	alice := escaped(filepath.Join(b.dir, "members/alice/cert.pem"))
	foreign := newFederation(t)
	stranger := identity{filepath.Join(foreign.dir, "members/alice/cert.pem"), filepath.Join(foreign.dir, "members/alice/key.pem")}

	for _, test := range []struct {
		name   string
		header http.Header
		works  bool
	}{
		{"alice", http.Header{"X-Client-Cert": {alice}}, true},
		{"nobody", http.Header{}, false},
		{"another header", http.Header{"X-Ssl-Cert": {alice}}, false},
		{"twice", http.Header{"X-Client-Cert": {alice, alice}}, false},
		{"a stranger", http.Header{"X-Client-Cert": {escaped(stranger.cert)}}, false},
		{"nonsense", http.Header{"X-Client-Cert": {"alice"}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := post(t, proxy, "http://proxy/am/3.0", user, test.header)
			if works := strings.Contains(strings.Join(strings.Fields(answer), ""), success); works != test.works {
				t.Errorf("answer is %.500s", answer)
			}
		})
	}

	t.Run("on the TLS listener", func(t *testing.T) {
		cert, err := os.ReadFile(stranger.cert)
		if err != nil {
			t.Fatal(err)
		}
		key, err := os.ReadFile(stranger.key)
		if err != nil {
			t.Fatal(err)
		}
		roots, err := openssl.ParsePEM([]byte(b.read("trusted", "ca.pem")))
		if err != nil {
			t.Fatal(err)
		}
		tls := &openssl.ClientConfig{CertificatePEM: cert, KeyPEM: key, Roots: roots}
		c := &http.Client{Transport: &http.Transport{DialTLSContext: tls.DialTLSContext}}
		answer := post(t, c, b.url, user, http.Header{"X-Client-Cert": {alice}})
		if strings.Contains(strings.Join(strings.Fields(answer), ""), success) {
			t.Errorf("a header made a stranger alice: %.500s", answer)
		}
	})
}

// Too much is refused, and those who are slow hold up nobody.
func TestLimits(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, setting{"request_bytes: 10MiB", "request_bytes: 1MiB"})
	p := b.python()
	slice := b.slice("big")
	creds := sfa(b.read("slices", "big", "credential-alice.xml"))
	long := strings.Replace(request(t, "one-node.rspec"), "</rspec>", "<!--"+strings.Repeat("x", 2<<20)+"--></rspec>", 1)
	p.want(6, "Allocate", slice.String(), creds, long, map[string]any{})
	p.must("GetVersion") // the same client goes on

	var deep any = "x"
	for range 100 {
		deep = []any{deep}
	}
	if r := p.call("GetVersion", map[string]any{"deep": deep}); r.Fault == nil && r.Error == "" {
		if code, _ := r.code(); code == 0 {
			t.Error("100 arrays within each other were read")
		}
	}
	if r := p.call("NoSuchMethod"); r.Fault == nil {
		t.Errorf("an unknown method is answered with %+v", r)
	}

	// Connections that say nothing, or begin and stop.
	address := strings.TrimSuffix(strings.TrimPrefix(b.url, "https://"), "/am/3.0")
	for i := range 40 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			if _, err := conn.Write([]byte{0x16, 0x03, 0x01}); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.python().must("GetVersion")
}

// Nothing that the federation keeps secret is in what the server logs.
func TestLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	b.slice("quiet")
	b.must("allocate", "quiet", repository(t, "testdata", "requests", "one-node.rspec"))
	b.refused("FORBIDDEN (3): ", "allocate", "--member", "alice", "urn:publicid:IDN+other.example.org+slice+quiet", repository(t, "testdata", "requests", "one-node.rspec"))
	b.must("delete", "quiet")
	b.stop()
	log, err := os.ReadFile(b.log)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"PRIVATE KEY", "BEGIN CERTIFICATE", "<signed-credential", "SignatureValue"} {
		if bytes.Contains(log, []byte(secret)) {
			t.Errorf("the log has %q", secret)
		}
	}
	if !bytes.Contains(log, []byte("method=Allocate")) {
		t.Errorf("the log does not tell of calls:\n%s", b.logTail())
	}
}

// init run again keeps what is there.
func TestInitAgain(t *testing.T) {
	t.Parallel()
	b := newFederation(t)
	before := b.read("members", "alice", "key.pem") + b.read("pki", "ca-key.pem") + b.read("croft.yaml")
	out := b.must("init")
	if strings.Contains(out, string(federation.Made)+" ") || !strings.Contains(out, string(federation.Kept)+" ") {
		t.Errorf("init again says\n%s", out)
	}
	if after := b.read("members", "alice", "key.pem") + b.read("pki", "ca-key.pem") + b.read("croft.yaml"); after != before {
		t.Error("init again changed files")
	}
	b.refused("says authority: "+authority, "init", "--authority", "other.example.org")
	b.refused("says listen: ", "init", "--listen", "127.0.0.1:1")
}
