package am_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"croft/internal/openssl"
	"croft/xmlrpc"
)

// GetVersion at every address, with and without options, tells of all versions
// as the client reached this server.
func TestGetVersion(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	urls := m{"2": "https://" + b.address + "/am/2.0", "3": "https://" + b.address + "/am/3.0", "faa1": "https://" + b.address + "/am/faa1"}
	for _, path := range []string{"/", "/RPC2", "/am/3.0", "/am/3.0/", "/am/2.0", "/am/faa1"} {
		u := b.as("alice", path)
		for _, params := range [][]any{nil, {m{}}, {m{"x": 1}}} {
			if path == "/am/faa1" {
				v := u.want(0, "GetVersion", params...)
				value := v.value.(m)
				wantSame(t, path, value[":api_versions"], urls)
				if v.raw[":api"] != value[":api"] || value[":api"] != 1 {
					t.Errorf(":api is %v and %v", v.raw[":api"], value[":api"])
				}
				if value[":single_allocation"] != false || value[":allocate"] != ":many" {
					t.Errorf("value is %v", value)
				}
				if types, ok := value[":am_type"].([]any); !ok || len(types) == 0 {
					t.Errorf(":am_type is %v", value[":am_type"])
				}
				if c := value[":credential_types"].([]any)[0].(m); c[":type"] != "geni_sfa" || c[":version"] != "2" {
					t.Errorf(":credential_types are %v", value[":credential_types"])
				}
				for k := range value {
					if !strings.Contains(k, ":") {
						t.Errorf("member %q without a colon", k)
					}
				}
				wantFormats(t, value, ":")
				continue
			}
			v := u.want(0, "GetVersion", params...)
			value := v.value.(m)
			api := 3
			if path == "/am/2.0" {
				api = 2
			} else {
				if value["geni_single_allocation"] != 0 || value["geni_allocate"] != "geni_many" {
					t.Errorf("value is %v", value)
				}
				for _, c := range value["geni_credential_types"].([]any) {
					if c.(m)["geni_type"] == nil || c.(m)["geni_version"] == nil {
						t.Errorf("geni_credential_types are %v", value["geni_credential_types"])
					}
				}
			}
			if v.raw["geni_api"] != api || value["geni_api"] != api {
				t.Errorf("%s: geni_api is %v and %v", path, v.raw["geni_api"], value["geni_api"])
			}
			wantSame(t, path, value["geni_api_versions"], urls)
			wantFormats(t, value, "geni_")
		}
		u.want(1, "GetVersion", m{}, m{})
	}
}

func wantSame(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func wantFormats(t testing.TB, value m, prefix string) {
	t.Helper()
	for _, name := range []string{"request_rspec_versions", "ad_rspec_versions"} {
		list, _ := value[prefix+name].([]any)
		if len(list) == 0 {
			t.Errorf("no %s", name)
		}
		for _, f := range list {
			for _, k := range []string{"type", "version", "schema", "namespace"} {
				if _, ok := f.(m)[k].(string); !ok {
					t.Errorf("%s: %s is %v", name, k, f.(m)[k])
				}
			}
			if _, ok := f.(m)["extensions"].([]any); !ok {
				t.Errorf("%s: extensions are %v", name, f.(m)["extensions"])
			}
		}
	}
}

// URLs are those of the Host header, or of the configuration without one.
func TestHostHeader(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	for host, want := range map[string]string{
		"am.example.net:443":  "https://am.example.net:443/am/2.0",
		"[2001:db8::1]:12369": "https://[2001:db8::1]:12369/am/2.0",
		"evil/\"><script>":    "https://am.example.org:12369/am/2.0",
		"":                    "https://am.example.org:12369/am/2.0",
	} {
		req := b.frontRequest(t, "GetVersion", http.Header{frontHeader: {url.PathEscape(string(read(t, "members/alice/cert.pem")))}})
		req.Host = host
		if host == "" {
			req.Host = " " // net/http would fill in the address
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Errorf("Host %q: %v", host, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusBadRequest {
			continue // net/http has refused it
		}
		if !strings.Contains(string(body), want) {
			t.Errorf("Host %q: no %s in %s", host, want, body)
		}
	}
}

// frontRequest is a call without parameters to the listener for a proxy.
func (b *bed) frontRequest(t testing.TB, method string, header http.Header) *http.Request {
	t.Helper()
	call := `<?xml version="1.0"?><methodCall><methodName>` + method + `</methodName><params/></methodCall>`
	req, err := http.NewRequest("POST", b.front+"/am/3.0", strings.NewReader(call))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "text/xml")
	return req
}

// What there is, and its signatures.
func TestIntrospection(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	ctx := context.Background()
	for path, want := range map[string]map[string]string{
		"/am/2.0":  {"CreateSliver": "[[struct string array string array struct]]", "ListResources": "[[struct array struct]]", "SliverStatus": "[[struct string array struct]]"},
		"/am/3.0":  {"Provision": "[[struct array array struct]]", "GetVersion": "[[struct] [struct struct]]", "Update": "[[struct array array string struct]]"},
		"/am/faa1": {"Provision": "[[struct array array struct struct]]", "ListResources": "[[struct array struct struct]]", "Delete": "[[struct array array struct]]"},
	} {
		u := b.as("alice", path)
		got, err := u.rpc.Call(ctx, "system.listMethods")
		if err != nil {
			t.Fatal(err)
		}
		names := map[any]bool{}
		for _, n := range got.([]any) {
			names[n] = true
			text, err := u.rpc.Call(ctx, "system.methodHelp", n)
			if s, _ := text.(string); err != nil || s == "" || path == "/am/faa1" && strings.Contains(s, "geni_") {
				t.Errorf("%s: help of %v is %v, %v", path, n, text, err)
			}
			signature, err := u.rpc.Call(ctx, "system.methodSignature", n)
			if list, _ := signature.([]any); err != nil || len(list) == 0 {
				t.Errorf("%s: signature of %v is %v, %v", path, n, signature, err)
			}
			if w, ok := want[n.(string)]; ok && fmt.Sprint(signature) != w {
				t.Errorf("%s: signature of %v is %v, want %s", path, n, signature, w)
			}
		}
		for n := range want {
			if !names[n] {
				t.Errorf("%s has no %s: %v", path, n, got)
			}
		}
		for _, params := range [][]any{{"NoSuch"}, {}, {7}} {
			var fault *xmlrpc.Fault
			if _, err := u.rpc.Call(ctx, "system.methodHelp", params...); !errors.As(err, &fault) {
				t.Errorf("help of %v: %v", params, err)
			}
		}
	}
}

// What is no call gets a Fault with the number that clients know.
func TestFaults(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	u := b.as("alice", "/am/3.0")
	for _, test := range []struct {
		name, body string
		want       int
	}{
		{"cut off", "<?xml version='1.0'?><methodCall><methodName>GetVersion", -32700},
		{"empty", "", -32700},
		{"a DTD", "<!DOCTYPE x [<!ENTITY a 'b'>]><methodCall><methodName>GetVersion</methodName></methodCall>", -32600},
		{"an unknown encoding", "<?xml version='1.0' encoding='EBCDIC-CP-BE'?><methodCall><methodName>GetVersion</methodName></methodCall>", -32701},
		{"bytes that are not UTF-8", "<methodCall><methodName>Get\xffVersion</methodName></methodCall>", -32702},
		{"another document", "<html/>", -32600},
		{"a response", "<methodResponse><params/></methodResponse>", -32600},
		{"an unknown type", "<methodCall><methodName>GetVersion</methodName><params><param><value><frob/></value></param></params></methodCall>", -32600},
		{"an unknown method", "<methodCall><methodName>Frobnicate</methodName></methodCall>", -32601},
		{"a method of another version", "<methodCall><methodName>CreateSliver</methodName></methodCall>", -32601},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, err := u.rpc.HTTP.Post(u.rpc.URL, "text/xml", strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			_, err = xmlrpc.DecodeResponse(body, xmlrpc.Limits{})
			var fault *xmlrpc.Fault
			if !errors.As(err, &fault) || fault.Code != test.want {
				t.Errorf("%d %s: %v, want fault %d", resp.StatusCode, body, err, test.want)
			}
		})
	}
	u.want(0, "GetVersion")
	if log := b.log.String(); !strings.Contains(log, "code=FAULT") {
		t.Errorf("faults are not in the log")
	}
}

// identity is a certificate with its key, in PEM.
type identity struct{ certificate, key []byte }

// issue issues a certificate by the federation's authority.
func issue(t testing.TB, change func(*x509.Certificate)) identity {
	t.Helper()
	block := func(name string) []byte {
		b, _ := pem.Decode(read(t, name))
		if b == nil {
			t.Fatalf("%s has no PEM", name)
		}
		return b.Bytes
	}
	caKey, err := x509.ParsePKCS8PrivateKey(block("pki/ca-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(block("pki/ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "carol"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		URIs: []*url.URL{{Scheme: "urn", Opaque: "publicid:IDN+example.org+user+carol"}},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return identity{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}
}

// stranger is somebody of no federation that is known here.
func stranger(t testing.TB) identity {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mallory"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		URIs: []*url.URL{{Scheme: "urn", Opaque: "publicid:IDN+example.org+user+alice"}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return identity{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}
}

// emulabAIA is the extension of Emulab's member certificates whose method OID
// has an arc of 128 bits.
func emulabAIA(t testing.TB) pkix.Extension {
	t.Helper()
	arc, ok := new(big.Int).SetString("305821105408246119474742976030998643995", 10)
	if !ok {
		t.Fatal("no number")
	}
	digits := []byte{}
	for n := arc; n.Sign() > 0; n = new(big.Int).Rsh(n, 7) {
		digits = append([]byte{0x80 | byte(new(big.Int).And(n, big.NewInt(0x7f)).Int64())}, digits...)
	}
	digits[len(digits)-1] &= 0x7f
	tlv := func(tag byte, value []byte) []byte { return append([]byte{tag, byte(len(value))}, value...) }
	method := tlv(0x06, append([]byte{2*40 + 25}, digits...))
	where := tlv(0x86, []byte("https://www.example.org:12369/protogeni/xmlrpc/sa"))
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 1}, Value: tlv(0x30, tlv(0x30, append(method, where...)))}
}

// Certificates as the field has them get in by both versions of TLS; those that
// prove nothing are told why.
func TestCertificates(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	emulab := issue(t, func(c *x509.Certificate) { c.ExtraExtensions = append(c.ExtraExtensions, emulabAIA(t)) })
	if der, _ := pem.Decode(emulab.certificate); der == nil {
		t.Fatal("no certificate")
	} else if _, err := x509.ParseCertificate(der.Bytes); err == nil {
		t.Error("Go reads the certificate: it is not like Emulab's")
	}
	b.with("/am/3.0", emulab.certificate, emulab.key, "carol").want(0, "GetVersion")

	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("without curl (apt-get install curl) only one version of TLS is tried")
	} else {
		dir := t.TempDir()
		writeFile(t, dir+"/cert.pem", emulab.certificate)
		writeFile(t, dir+"/key.pem", emulab.key)
		writeFile(t, dir+"/ca.pem", read(t, "trusted/ca.pem"))
		for _, version := range []string{"1.2", "1.3"} {
			out, err := exec.Command("curl", "-sS", "--max-time", "60", "--tlsv"+version, "--tls-max", version, "--cacert", dir+"/ca.pem",
				"--cert", dir+"/cert.pem", "--key", dir+"/key.pem", "-H", "Content-Type: text/xml",
				"-d", "<methodCall><methodName>GetVersion</methodName></methodCall>", "https://"+b.address+"/am/3.0").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "<name>geni_code</name><value><int>0</int>") {
				t.Errorf("TLS %s: %v\n%s", version, err, out)
			}
		}
	}
	for _, test := range []struct {
		name string
		identity
		why string
	}{
		{"of nobody known", stranger(t), "trust"},
		{"expired", issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), "expired"},
		{"without a URN", issue(t, func(c *x509.Certificate) { c.URIs = nil }), "urn"},
		{"of another authority", issue(t, func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: "urn", Opaque: "publicid:IDN+example.net+user+carol"}}
		}), "example.net"},
		{"of an authority", issue(t, func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: "urn", Opaque: "publicid:IDN+example.org+authority+sa"}}
		}), "authority"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := b.with("/am/3.0", test.certificate, test.key, "nobody")
			for _, method := range []string{"GetVersion", "ListResources"} {
				if r := u.want(3, method, []any{}, options()); !strings.Contains(strings.ToLower(r.output), test.why) {
					t.Errorf("%s: %q does not say %q", method, r.output, test.why)
				}
			}
		})
	}
}

// Behind a proxy one header says who calls; its chain is verified again.
func TestHeader(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{})
	alice := string(read(t, "members/alice/cert.pem"))
	leaf, _ := pem.Decode([]byte(alice))
	foreign := stranger(t)
	emulab := issue(t, func(c *x509.Certificate) { c.ExtraExtensions = append(c.ExtraExtensions, emulabAIA(t)) })
	lines := strings.TrimSpace(alice)
	one := func(v string) http.Header { return http.Header{frontHeader: {v}} }
	for _, test := range []struct {
		name   string
		header http.Header
		works  bool
	}{
		{"escaped, as nginx has it", one(url.PathEscape(alice)), true},
		{"escaped with plus signs left", one(strings.NewReplacer("\n", "%0A", " ", "%20").Replace(alice)), true},
		{"blanks for line ends", one(strings.ReplaceAll(lines, "\n", " ")), true},
		{"tabs for line ends", one(strings.ReplaceAll(lines, "\n", "\t")), true},
		{"DER in base64, as HAProxy has it", one(base64.StdEncoding.EncodeToString(leaf.Bytes)), true},
		{"Emulab's kind", one(url.PathEscape(string(emulab.certificate))), true},
		{"none", http.Header{}, false},
		{"empty", one(""), false},
		{"two, one after the other", one(url.PathEscape(alice) + "%0A" + url.PathEscape(string(foreign.certificate))), true},
		{"hers behind a stranger's", one(url.PathEscape(string(foreign.certificate)) + "%0A" + url.PathEscape(alice)), false},
		{"text before it", one(url.PathEscape("alice\n" + alice)), false},
		{"in another header", http.Header{"X-Ssl-Cert": {url.PathEscape(alice)}}, false},
		{"twice", http.Header{frontHeader: {url.PathEscape(alice), url.PathEscape(alice)}}, false},
		{"two, joined as a proxy joins them", one(url.PathEscape(alice) + ", " + url.PathEscape(alice)), false},
		{"a stranger's, with her name", one(url.PathEscape(string(foreign.certificate))), false},
		{"not a certificate", one("alice"), false},
		{"a key", one(url.PathEscape(string(foreign.key))), false},
		{"cut off", one(url.PathEscape(alice[:len(alice)/2])), false},
		{"a bad escape", one("%zz"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, err := http.DefaultClient.Do(b.frontRequest(t, "GetVersion", test.header))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			want := "<name>geni_code</name><value><int>0</int>"
			if !test.works {
				want = "<name>geni_code</name><value><int>3</int>"
			}
			if !strings.Contains(string(body), want) {
				t.Errorf("answer is %s", body)
			}
		})
	}
	t.Run("on the TLS listener it counts for nothing", func(t *testing.T) {
		u := b.with("/am/3.0", foreign.certificate, foreign.key, "mallory")
		req := b.frontRequest(t, "GetVersion", one(url.PathEscape(alice)))
		req.URL, _ = url.Parse(u.rpc.URL)
		req.Host = ""
		resp, err := u.rpc.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(body), "<name>geni_code</name><value><int>3</int>") {
			t.Errorf("a header made a stranger alice: %v %s", err, body)
		}
	})
}

// A request that is too long is answered in the code struct.
func TestTooBig(t *testing.T) {
	t.Parallel()
	u := newBed(t, settings{requestBytes: 2 << 20}).as("alice", "/am/3.0")
	slice, creds := u.slice("big")
	long := strings.Replace(nodes("a"), "</rspec>", "<!--"+strings.Repeat("x", 3<<20)+"--></rspec>", 1)
	u.want(6, "Allocate", slice, creds, long, m{})
	u.want(0, "GetVersion")
	foreign := stranger(t)
	nobody := u.with("/am/3.0", foreign.certificate, foreign.key, "nobody")
	if r, err := nobody.try("Allocate", slice, creds, strings.Repeat("x", 1<<20), m{}); err == nil && r.code == 0 {
		t.Errorf("a stranger's large request is answered with %v", r)
	}
}

// FuzzFromHeader reads what a proxy, or somebody who passes for one, may put
// into the header.
func FuzzFromHeader(f *testing.F) {
	foreign := stranger(f)
	pemText := string(foreign.certificate)
	f.Add(url.PathEscape(pemText))
	f.Add(strings.ReplaceAll(pemText, "\n", "\t"))
	der, _ := pem.Decode(foreign.certificate)
	f.Add(base64.StdEncoding.EncodeToString(der.Bytes))
	f.Add("%")
	f.Add("-----BEGIN CERTIFICATE-----")
	chains := fromHeader()
	f.Fuzz(func(t *testing.T, value string) {
		list, err := chains(&http.Request{Header: http.Header{frontHeader: {value}}})
		if (err == nil) != (len(list) > 0) {
			t.Errorf("%d certificates and %v", len(list), err)
		}
		for _, c := range list {
			if _, err := openssl.ParseCertificate(c.DER); err != nil {
				t.Errorf("a certificate that does not parse again: %v", err)
			}
		}
	})
}
