package xmldsig

import (
	"bytes"
	"testing"
)

// A document that is read has canonical forms that are read, and are their own
// canonical forms.
func FuzzParse(f *testing.F) {
	for _, doc := range odd {
		f.Add([]byte(doc))
	}
	for _, c := range refused {
		f.Add([]byte(c.doc))
	}
	wide := Limits{Bytes: 64 << 20, Elements: 1 << 20, Depth: 250, Attributes: 1 << 20, Namespaces: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Parse(data, Limits{})
		if err != nil {
			return
		}
		for _, m := range []Method{{Comments: true}, {Exclusive: true, Comments: true}, {}, {Exclusive: true}} {
			once := doc.Canonical(m)
			again, err := Parse(once, wide)
			if err != nil {
				t.Fatalf("%+v: the canonical form does not parse: %v\n%q", m, err, once)
			}
			if twice := again.Canonical(m); !bytes.Equal(once, twice) {
				t.Fatalf("%+v:\n once %q\ntwice %q", m, once, twice)
			}
		}
	})
}

// Whatever a signature element looks like, it is read or refused.
func FuzzReadSignature(f *testing.F) {
	f.Add(`<SignedInfo><CanonicalizationMethod Algorithm="` + InclusiveC14N + `"/><SignatureMethod Algorithm="http://www.w3.org/2000/09/xmldsig#rsa-sha1"/><Reference URI="#r"><Transforms><Transform Algorithm="` + enveloped + `"/></Transforms><DigestMethod Algorithm="http://www.w3.org/2000/09/xmldsig#sha1"/><DigestValue>AAAA</DigestValue></Reference></SignedInfo><SignatureValue>AAAA</SignatureValue><KeyInfo><X509Data><X509Certificate>AAAA</X509Certificate></X509Data></KeyInfo>`)
	f.Fuzz(func(t *testing.T, inner string) {
		doc, err := Parse([]byte(`<Signature xmlns="`+Namespace+`">`+inner+`</Signature>`), Limits{})
		if err != nil {
			return
		}
		sig, err := ReadSignature(doc.Root)
		if (err == nil) != (sig != nil) {
			t.Fatalf("%v and %v", sig, err)
		}
		if err == nil && (sig.Target == "" || len(sig.Certificates) == 0) {
			t.Fatalf("read a signature over %q by %d certificates", sig.Target, len(sig.Certificates))
		}
	})
}
