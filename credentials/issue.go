package credentials

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"croft/credentials/xmldsig"
	"croft/internal/openssl"
	"croft/urn"
)

// An Issuer signs credentials.
type Issuer struct {
	// Key is RSA or ECDSA, and the key of the first certificate.
	Key crypto.Signer
	// Chain is PEM: the issuer's certificate, then those of the authorities
	// above it as far as verifiers may need them.
	Chain []byte
	// Random makes ids and serial numbers; crypto/rand.Reader outside tests.
	Random io.Reader
	// SHA1 signs with rsa-sha1, for verifiers that know nothing newer.
	SHA1 bool
	// Exclusive canonicalizes exclusively; most tools of the field use
	// inclusive canonicalization.
	Exclusive bool
}

// A Privilege is a right that a credential gives, and whether its owner may
// pass it on.
type Privilege struct {
	Name     string
	Delegate bool
}

// An Issue is a credential to be made: Owner may use Privileges on Target
// until Expires. Owner and Target are certificates in PEM with the
// authorities above them behind; each carries the URN in its subjectAltName.
type Issue struct {
	Issuer
	Owner, Target []byte
	Privileges    []Privilege
	Expires       time.Time
}

// Sign makes a signed SFA credential (geni_sfa 3), in the shape that the GENI
// clearinghouses give out and their tools read.
func Sign(i Issue) ([]byte, error) {
	body, err := i.privilege(i.Target)
	if err != nil {
		return nil, fmt.Errorf("sign a credential: %w", err)
	}
	return i.sign(envelope{body: body})
}

// Delegate makes a credential that passes on what parent gives: its owner is
// d.Owner, and d.Issuer is the owner of parent. Target is parent's; d.Target
// must be empty. Whether parent allows what d asks for is for the verifier of
// the result to find out.
func Delegate(parent []byte, d Issue) ([]byte, error) {
	if len(d.Target) > 0 {
		return nil, errors.New("delegate a credential: the target is the parent's and cannot be given")
	}
	doc, err := readDocument(parent)
	if err != nil {
		return nil, fmt.Errorf("delegate a credential: parent: %w", err)
	}
	fields, err := readFields(doc.credential)
	if err != nil {
		return nil, fmt.Errorf("delegate a credential: parent: %w", err)
	}
	body, err := d.privilege([]byte(fields.targetGID))
	if err != nil {
		return nil, fmt.Errorf("delegate a credential: %w", err)
	}
	// Parent, its signatures and what they inherit go over byte for byte.
	return d.sign(envelope{
		attributes: string(doc.xml.AttributesSource(doc.xml.Root)),
		body:       body + "<parent>" + string(doc.xml.Source(doc.credential)) + "</parent>",
		inherited:  string(doc.xml.AttributesSource(doc.signatures)),
		signatures: string(doc.xml.InnerSource(doc.signatures)),
	})
}

// privilege writes the fields of a credential of the type privilege.
func (i Issue) privilege(target []byte) (string, error) {
	owner, ownerPEM, err := gid(i.Owner)
	if err != nil {
		return "", fmt.Errorf("owner: %w", err)
	}
	object, objectPEM, err := gid(target)
	if err != nil {
		return "", fmt.Errorf("target: %w", err)
	}
	if len(i.Privileges) == 0 {
		return "", errors.New("no privileges: the credential would be good for nothing")
	}
	var b strings.Builder
	b.WriteString("<type>privilege</type>")
	serial := make([]byte, 4)
	if _, err := io.ReadFull(i.Random, serial); err != nil {
		return "", fmt.Errorf("random serial number: %w", err)
	}
	field := func(name, value string) { b.WriteString("<" + name + ">" + escape(value) + "</" + name + ">") }
	field("serial", fmt.Sprint(uint32(serial[0]&0x7f)<<24|uint32(serial[1])<<16|uint32(serial[2])<<8|uint32(serial[3])))
	field("owner_gid", ownerPEM)
	field("owner_urn", owner.String())
	field("target_gid", objectPEM)
	field("target_urn", object.String())
	field("uuid", "")
	field("expires", i.Expires.UTC().Format(time.RFC3339))
	b.WriteString("<privileges>")
	for _, p := range i.Privileges {
		b.WriteString("<privilege>")
		field("name", p.Name)
		field("can_delegate", fmt.Sprint(p.Delegate))
		b.WriteString("</privilege>")
	}
	b.WriteString("</privileges>")
	return b.String(), nil
}

// gid reads a certificate chain and returns the URN of its first certificate
// and the chain as a credential holds it.
func gid(chain []byte) (urn.URN, string, error) {
	certificates, err := openssl.ParsePEM(chain)
	if err != nil {
		return urn.URN{}, "", err
	}
	name, err := nameOf(certificates[0])
	if err != nil {
		return urn.URN{}, "", err
	}
	var b strings.Builder
	for _, c := range certificates {
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c.DER}); err != nil {
			return urn.URN{}, "", err
		}
	}
	return name, b.String(), nil
}

// envelope is what surrounds a credential that is to be signed. What it holds
// is XML.
type envelope struct {
	attributes string // of signed-credential; empty for the usual ones
	body       string // the fields of the credential
	inherited  string // attributes of signatures
	signatures string // there already
}

const usualAttributes = ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"` +
	` xsi:noNamespaceSchemaLocation="http://www.geni.net/resources/credential/2/credential.xsd"` +
	` xsi:schemaLocation="http://www.protogeni.net/resources/credential/ext/policy/1 http://www.protogeni.net/resources/credential/ext/policy/1/policy.xsd"`

func (i Issuer) sign(e envelope) ([]byte, error) {
	certificates, err := openssl.ParsePEM(i.Chain)
	if err != nil {
		return nil, fmt.Errorf("sign a credential: issuer: %w", err)
	}
	if public, ok := i.Key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(certificates[0].PublicKey) {
		return nil, fmt.Errorf("sign a credential: the key is not the one of the issuer's certificate %s", certificates[0].Subject)
	}
	signer := xmldsig.Signer{Key: i.Key, Options: xmldsig.Options{SHA1: i.SHA1, Exclusive: i.Exclusive}}
	for _, c := range certificates {
		signer.Certificates = append(signer.Certificates, c.DER)
	}
	random := make([]byte, 8)
	if _, err := io.ReadFull(i.Random, random); err != nil {
		return nil, fmt.Errorf("sign a credential: random id: %w", err)
	}
	// GENI's tools strip the letters of "Sig_" off both ends of an id: hex
	// digits have none of them.
	id := "ref" + hex.EncodeToString(random)
	template, err := signer.Template("Sig_"+id, id)
	if err != nil {
		return nil, fmt.Errorf("sign a credential: %w", err)
	}
	if e.attributes == "" {
		e.attributes = usualAttributes
	}
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<signed-credential" + e.attributes + ">")
	b.WriteString(`<credential xml:id="` + id + `">` + e.body + "</credential>")
	b.WriteString("<signatures" + e.inherited + ">" + e.signatures + template + "</signatures></signed-credential>\n")
	signed, err := signer.Complete(i.Random, b.Bytes(), "Sig_"+id)
	if err != nil {
		return nil, fmt.Errorf("sign a credential: %w", err)
	}
	return signed, nil
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
