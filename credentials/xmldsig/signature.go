package xmldsig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	_ "crypto/sha1" // the algorithms of SignatureMethod and DigestMethod
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/base64"
	"math/big"
	"slices"
	"strings"
)

// Namespace is the namespace of XML Signature.
const Namespace = "http://www.w3.org/2000/09/xmldsig#"

const enveloped = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"

// A KeyType is what a signature algorithm signs with.
type keyType int

const (
	rsaKey keyType = iota
	ecdsaKey
)

type algorithm struct {
	key  keyType
	hash crypto.Hash
}

var signatureMethods = map[string]algorithm{
	"http://www.w3.org/2000/09/xmldsig#rsa-sha1":          {rsaKey, crypto.SHA1},
	"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256":   {rsaKey, crypto.SHA256},
	"http://www.w3.org/2001/04/xmldsig-more#rsa-sha384":   {rsaKey, crypto.SHA384},
	"http://www.w3.org/2001/04/xmldsig-more#rsa-sha512":   {rsaKey, crypto.SHA512},
	"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha1":   {ecdsaKey, crypto.SHA1},
	"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256": {ecdsaKey, crypto.SHA256},
	"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384": {ecdsaKey, crypto.SHA384},
	"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha512": {ecdsaKey, crypto.SHA512},
}

var digestMethods = map[string]crypto.Hash{
	"http://www.w3.org/2000/09/xmldsig#sha1":        crypto.SHA1,
	"http://www.w3.org/2001/04/xmlenc#sha256":       crypto.SHA256,
	"http://www.w3.org/2001/04/xmldsig-more#sha384": crypto.SHA384,
	"http://www.w3.org/2001/04/xmlenc#sha512":       crypto.SHA512,
}

// A Signature is a Signature element as read: nothing in it is proven.
type Signature struct {
	// Element is the Signature element.
	Element *Element
	// Target is the xml:id of the one element that it signs.
	Target string
	// Certificates are the DER certificates of its X509Data, in the order of
	// the document. Which of them is the signer's is for the caller to find
	// out, by a chain to a trust root.
	Certificates [][]byte
	// SHA1 says whether its digest or its signature is made with SHA-1.
	SHA1 bool

	signedInfo *Element
	method     Method // of SignedInfo
	algorithm  algorithm
	transform  Method // of the reference
	enveloped  bool
	digest     crypto.Hash
	digestSum  []byte
	value      []byte
	keyValue   *keyValue
}

// ReadSignature reads a Signature element. Of the shapes that the
// recommendation allows, it takes those that enveloped signatures over one
// element have.
func ReadSignature(e *Element) (*Signature, error) {
	if !e.Is(Namespace, "Signature") {
		return nil, refuse(RuleStructure, "line %d: <%s> is no Signature", e.Line, e.Name.Local)
	}
	s := &Signature{Element: e}
	parts, err := children(e, "SignedInfo", "SignatureValue", "KeyInfo")
	if err != nil {
		return nil, err
	}
	s.signedInfo = parts[0]
	if s.value, err = binary(parts[1]); err != nil {
		return nil, err
	}
	if err := s.readSignedInfo(); err != nil {
		return nil, err
	}
	if err := s.readKeyInfo(parts[2]); err != nil {
		return nil, err
	}
	return s, nil
}

// children returns the element children of e, which must be exactly these
// elements of the signature namespace, with nothing but white space and
// comments between them.
func children(e *Element, names ...string) ([]*Element, error) {
	all, err := onlyElements(e)
	if err != nil {
		return nil, err
	}
	if len(all) != len(names) {
		return nil, refuse(RuleStructure, "line %d: %s has %d elements in it; want %s", e.Line, e.Name.Local, len(all), strings.Join(names, ", "))
	}
	for i, c := range all {
		if !c.Is(Namespace, names[i]) {
			return nil, refuse(RuleStructure, "line %d: <%s> where %s belongs", c.Line, c.Name.Local, names[i])
		}
	}
	return all, nil
}

func onlyElements(e *Element) ([]*Element, error) {
	for _, child := range e.Children {
		if text, ok := child.(Text); ok && strings.Trim(string(text), " \t\r\n") != "" {
			return nil, refuse(RuleStructure, "line %d: text in %s", e.Line, e.Name.Local)
		}
	}
	return e.Elements(), nil
}

// binary reads an element that holds base64.
func binary(e *Element) ([]byte, error) {
	text, err := e.Value()
	if err != nil {
		return nil, err
	}
	compact := strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, text)
	data, err := base64.StdEncoding.Strict().DecodeString(compact)
	if err != nil || len(data) == 0 {
		return nil, refuse(RuleStructure, "line %d: %s is not base64", e.Line, e.Name.Local)
	}
	return data, nil
}

func uri(e *Element) string {
	v, _ := e.Attribute("", "Algorithm")
	return v
}

func (s *Signature) readSignedInfo() error {
	parts, err := children(s.signedInfo, "CanonicalizationMethod", "SignatureMethod", "Reference")
	if err != nil {
		return err
	}
	if s.method, err = canonicalization(parts[0]); err != nil {
		return err
	}
	var known bool
	if s.algorithm, known = signatureMethods[uri(parts[1])]; !known {
		return refuse(RuleAlgorithm, "line %d: signature algorithm %q", parts[1].Line, uri(parts[1]))
	}
	if _, err := children(parts[1]); err != nil {
		return err
	}
	ref := parts[2]
	target, _ := ref.Attribute("", "URI")
	id, found := strings.CutPrefix(target, "#")
	if !found || !isName(id) {
		return refuse(RuleReference, "line %d: Reference to %q; only #ID, the id of an element, is followed", ref.Line, target)
	}
	s.Target = id
	if parts, err = children(ref, "Transforms", "DigestMethod", "DigestValue"); err != nil {
		// Transforms may be absent.
		if parts, err = children(ref, "DigestMethod", "DigestValue"); err != nil {
			return err
		}
		parts = append([]*Element{nil}, parts...)
	}
	if parts[0] != nil {
		if err := s.readTransforms(parts[0]); err != nil {
			return err
		}
	}
	if s.digest, known = digestMethods[uri(parts[1])]; !known {
		return refuse(RuleAlgorithm, "line %d: digest algorithm %q", parts[1].Line, uri(parts[1]))
	}
	if _, err := children(parts[1]); err != nil {
		return err
	}
	s.digestSum, err = binary(parts[2])
	s.SHA1 = s.digest == crypto.SHA1 || s.algorithm.hash == crypto.SHA1
	return err
}

// readTransforms reads: the enveloped signature or not, then a
// canonicalization or not.
func (s *Signature) readTransforms(e *Element) error {
	all, err := onlyElements(e)
	if err != nil {
		return err
	}
	canonical := false
	for _, t := range all {
		switch {
		case !t.Is(Namespace, "Transform"):
			return refuse(RuleStructure, "line %d: <%s> among the transforms", t.Line, t.Name.Local)
		case canonical:
			return refuse(RuleTransform, "line %d: a transform after the canonicalization", t.Line)
		case uri(t) == enveloped && !s.enveloped:
			if _, err := children(t); err != nil {
				return err
			}
			s.enveloped = true
		default:
			if s.transform, err = canonicalization(t); err != nil {
				return refuse(RuleTransform, "line %d: transform %q", t.Line, uri(t))
			}
			canonical = true
		}
	}
	// A reference by id never includes comments (XML Signature, 4.4.3.3),
	// whatever the canonicalization would keep.
	s.transform.Comments = false
	return nil
}

// maxPrefixes bounds the PrefixList of an exclusive canonicalization.
const maxPrefixes = 32

func canonicalization(e *Element) (Method, error) {
	m, known := methods[uri(e)]
	if !known {
		return Method{}, refuse(RuleAlgorithm, "line %d: canonicalization %q", e.Line, uri(e))
	}
	all, err := onlyElements(e)
	if err != nil {
		return Method{}, err
	}
	if len(all) == 0 {
		return m, nil
	}
	if !m.Exclusive || len(all) > 1 || !all[0].Is("http://www.w3.org/2001/10/xml-exc-c14n#", "InclusiveNamespaces") || len(all[0].Children) > 0 {
		return Method{}, refuse(RuleStructure, "line %d: parameters of the canonicalization", e.Line)
	}
	list, _ := all[0].Attribute("", "PrefixList")
	for _, prefix := range strings.Fields(list) {
		switch {
		case len(m.Inclusive) == maxPrefixes:
			return Method{}, refuse(RuleLimit, "line %d: more than %d prefixes", e.Line, maxPrefixes)
		case prefix == "#default":
			prefix = ""
		case !isName(prefix) || strings.Contains(prefix, ":"):
			return Method{}, refuse(RuleStructure, "line %d: namespace prefix %q", e.Line, prefix)
		}
		m.Inclusive = append(m.Inclusive, prefix)
	}
	return m, nil
}

// Verify checks the signature with a key that the caller has reason to trust
// and returns the signed element of doc. What is read of the document
// afterwards must be read from that element alone: nothing else is signed.
func (s *Signature) Verify(doc *Document, key crypto.PublicKey) (*Element, error) {
	target, err := doc.ByID(s.Target)
	if err != nil {
		return nil, err
	}
	if target == nil {
		return nil, refuse(RuleReference, "no element has the id %q", s.Target)
	}
	if err := s.keyValue.match(key); err != nil {
		return nil, err
	}
	var omit *Element
	if s.enveloped {
		omit = s.Element
	}
	for at := target; at != nil; at = at.Parent {
		if at == s.Element {
			return nil, refuse(RuleReference, "the signature signs a part of itself")
		}
	}
	if !bytes.Equal(sum(s.digest, target.Canonical(s.transform, omit)), s.digestSum) {
		return nil, refuse(RuleDigest, "the element %q is not what was signed", s.Target)
	}
	hashed := sum(s.algorithm.hash, s.signedInfo.Canonical(s.method, nil))
	valid := false
	switch key := key.(type) {
	case *rsa.PublicKey:
		valid = s.algorithm.key == rsaKey && rsa.VerifyPKCS1v15(key, s.algorithm.hash, hashed, s.value) == nil
	case *ecdsa.PublicKey:
		size := (key.Curve.Params().BitSize + 7) / 8
		if s.algorithm.key == ecdsaKey && len(s.value) == 2*size {
			r, t := new(big.Int).SetBytes(s.value[:size]), new(big.Int).SetBytes(s.value[size:])
			valid = ecdsa.Verify(key, hashed, r, t)
		}
	default:
		return nil, refuse(RuleAlgorithm, "a key of the type %T does not verify signatures", key)
	}
	if !valid {
		return nil, refuse(RuleSignature, "the signature over %q was not made with the signer's key, or was changed", s.Target)
	}
	return target, nil
}

func sum(h crypto.Hash, data []byte) []byte {
	w := h.New()
	w.Write(data)
	return w.Sum(nil)
}

// Signatures returns the Signature elements that are children of e.
func Signatures(e *Element) []*Element {
	return slices.DeleteFunc(e.Elements(), func(c *Element) bool { return !c.Is(Namespace, "Signature") })
}
