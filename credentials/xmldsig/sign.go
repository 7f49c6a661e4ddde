package xmldsig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"strings"
)

// Options say how Sign signs.
type Options struct {
	// SHA1 signs with SHA-1, for verifiers that know nothing newer.
	SHA1 bool
	// Exclusive canonicalizes exclusively.
	Exclusive bool
}

// A Signer makes enveloped signatures.
type Signer struct {
	Key          crypto.Signer // RSA or ECDSA
	Certificates [][]byte      // DER, the signer's first
	Options      Options
}

// Template returns an unsigned Signature element over the element with the
// xml:id target, itself with the xml:id id, to be put into a document that
// Complete then signs.
func (s *Signer) Template(id, target string) (string, error) {
	method, digest := "", "http://www.w3.org/2001/04/xmlenc#sha256"
	switch s.Key.Public().(type) {
	case *rsa.PublicKey:
		method = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
		if s.Options.SHA1 {
			method = "http://www.w3.org/2000/09/xmldsig#rsa-sha1"
		}
	case *ecdsa.PublicKey:
		method = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"
		if s.Options.SHA1 {
			method = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha1"
		}
	default:
		return "", fmt.Errorf("sign %q: a key of the type %T makes no XML signatures; want RSA or ECDSA", target, s.Key.Public())
	}
	canonical := InclusiveC14N
	if s.Options.SHA1 {
		digest = "http://www.w3.org/2000/09/xmldsig#sha1"
	}
	transform := ""
	if s.Options.Exclusive {
		canonical = ExclusiveC14N
		transform = `<Transform Algorithm="` + ExclusiveC14N + `"/>`
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<Signature xmlns="%s" xml:id="%s"><SignedInfo><CanonicalizationMethod Algorithm="%s"/><SignatureMethod Algorithm="%s"/>`, Namespace, id, canonical, method)
	fmt.Fprintf(&b, `<Reference URI="#%s"><Transforms><Transform Algorithm="%s"/>%s</Transforms><DigestMethod Algorithm="%s"/><DigestValue></DigestValue></Reference></SignedInfo>`, target, enveloped, transform, digest)
	b.WriteString(`<SignatureValue></SignatureValue><KeyInfo><X509Data>`)
	for _, der := range s.Certificates {
		b.WriteString("<X509Certificate>" + wrap(der) + "</X509Certificate>")
	}
	b.WriteString("</X509Data></KeyInfo></Signature>")
	return b.String(), nil
}

// Complete fills in the digest and the value of the template with the xml:id
// id in the document.
func (s *Signer) Complete(random io.Reader, document []byte, id string) ([]byte, error) {
	document, err := fill(document, id, func(doc *Document, e *Element) (*Element, []byte, error) {
		ref := e.Elements()[0].Elements()[2]
		target, err := doc.ByID(strings.TrimPrefix(attribute(ref, "URI"), "#"))
		if err != nil {
			return nil, nil, err
		}
		if target == nil {
			return nil, nil, refuse(RuleReference, "nothing has the id that the signature %q is over", id)
		}
		digest := ref.Elements()[1]
		data := target.Canonical(Method{Exclusive: s.Options.Exclusive}, e)
		return ref.Elements()[2], sum(digestMethods[uri(digest)], data), nil
	})
	if err != nil {
		return nil, err
	}
	return fill(document, id, func(_ *Document, e *Element) (*Element, []byte, error) {
		info := e.Elements()[0]
		data := info.Canonical(Method{Exclusive: s.Options.Exclusive}, nil)
		value, err := s.sign(random, signatureMethods[uri(info.Elements()[1])].hash, data)
		return e.Elements()[1], value, err
	})
}

func attribute(e *Element, name string) string {
	v, _ := e.Attribute("", name)
	return v
}

// fill puts base64 into one element of a signature.
func fill(document []byte, id string, value func(*Document, *Element) (at *Element, data []byte, err error)) ([]byte, error) {
	doc, err := Parse(document, Limits{})
	if err != nil {
		return nil, fmt.Errorf("sign %q: %w", id, err)
	}
	e, err := doc.ByID(id)
	if err == nil && e == nil {
		err = refuse(RuleReference, "no such template in the document")
	}
	if err != nil {
		return nil, fmt.Errorf("sign %q: %w", id, err)
	}
	at, data, err := value(doc, e)
	if err != nil {
		return nil, fmt.Errorf("sign %q: %w", id, err)
	}
	var out bytes.Buffer
	out.Write(document[:at.inner])
	out.WriteString(wrap(data))
	out.Write(document[at.innerEnd:])
	return out.Bytes(), nil
}

func (s *Signer) sign(random io.Reader, hash crypto.Hash, data []byte) ([]byte, error) {
	value, err := s.Key.Sign(random, sum(hash, data), hash)
	if err != nil {
		return nil, err
	}
	public, ok := s.Key.Public().(*ecdsa.PublicKey)
	if !ok {
		return value, nil
	}
	var pair struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(value, &pair); err != nil {
		return nil, err
	}
	size := (public.Curve.Params().BitSize + 7) / 8
	out := make([]byte, 2*size)
	pair.R.FillBytes(out[:size])
	pair.S.FillBytes(out[size:])
	return out, nil
}

// wrap writes base64 in lines of 64.
func wrap(data []byte) string {
	s := base64.StdEncoding.EncodeToString(data)
	var b strings.Builder
	for len(s) > 64 {
		b.WriteString(s[:64] + "\n")
		s = s[64:]
	}
	b.WriteString(s)
	return b.String()
}
