package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Credentials that xmlsec1 has signed count; those that it would not verify
// do not.
func TestCredentialsOfXmlsec1(t *testing.T) {
	t.Parallel()
	need(t, "xmlsec1")
	b := newTestbed(t)
	p := b.python()
	slice := b.slice("signed")
	ours := b.read("slices", "signed", "credential-alice.xml")
	for _, file := range []string{"members/alice/user-credential.xml", "slices/signed/credential-alice.xml"} {
		r := runCommand(t, exec.Command("xmlsec1", "--verify", "--trusted-pem", b.root, filepath.Join(b.dir, file)), "")
		if r.status != 0 {
			t.Errorf("xmlsec1 does not verify %s: %s", file, r.err)
		}
	}

	// The same credential with its signature taken out is a template.
	template := ours
	for _, value := range []string{"DigestValue", "SignatureValue"} {
		template = regexp.MustCompile(`(<`+value+`[^>]*>)[^<]*(</`+value+`>)`).ReplaceAllString(template, "$1$2")
	}
	template = regexp.MustCompile(`(?s)<X509Data>.*</X509Data>`).ReplaceAllString(template, "<X509Data/>")
	template = regexp.MustCompile(`(?s)<KeyValue>.*</KeyValue>`).ReplaceAllString(template, "")
	resigned := b.xmlsec1(template, "pki/sa-key.pem", "pki/sa.pem")
	p.must("Allocate", slice.String(), sfa(resigned), request(t, "one-node.rspec"), map[string]any{})
	p.must("Delete", urns(slice), sfa(resigned), map[string]any{})

	bob := "urn:publicid:IDN+" + authority + "+user+alic3"
	for _, test := range []struct{ name, document string }{
		{"another owner", strings.Replace(ours, "user+alice<", "user+alic3<", 1)},
		{"a later end", regexp.MustCompile(`<expires>20`).ReplaceAllString(ours, "<expires>21")},
		{"signed by a member", b.xmlsec1(template, "members/alice/key.pem", "members/alice/cert.pem")},
		{"no signature", regexp.MustCompile(`(?s)<Signature .*</Signature>`).ReplaceAllString(ours, "")},
		{"a DTD", strings.Replace(ours, "?>", "?><!DOCTYPE signed-credential [<!ENTITY a 'b'>]>", 1)},
		{"not XML", bob},
		{"the user's only", b.read("members", "alice", "user-credential.xml")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.document == ours {
				t.Fatal("the forgery is none")
			}
			q := *p
			q.TB = t
			q.want(3, "Allocate", slice.String(), sfa(test.document), request(t, "one-node.rspec"), map[string]any{})
			// A useless credential beside a good one does no harm.
			q.want(12, "Status", urns(slice), sfa(test.document, ours), map[string]any{})
		})
	}
}

// xmlsec1 signs a template.
func (b *testbed) xmlsec1(template, key, cert string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "template.xml")
	if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
		b.Fatal(err)
	}
	keys := filepath.Join(b.dir, key)
	for _, c := range splitPEM(b, filepath.Join(b.dir, cert)) {
		keys += "," + c
	}
	r := runCommand(b, exec.Command("xmlsec1", "--sign", "--privkey-pem", keys, file), "")
	if r.status != 0 {
		b.Fatalf("xmlsec1 --sign: %s\n%s", r.err, template)
	}
	return r.out
}

// splitPEM writes each certificate of a chain to a file of its own, as xmlsec1
// wants them.
func splitPEM(b *testbed, chain string) []string {
	b.Helper()
	data, err := os.ReadFile(chain)
	if err != nil {
		b.Fatal(err)
	}
	var files []string
	for _, part := range strings.SplitAfter(string(data), "-----END CERTIFICATE-----\n") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		file := filepath.Join(b.TempDir(), "cert.pem")
		if err := os.WriteFile(file, []byte(part), 0o600); err != nil {
			b.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
