package xmldsig

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// signedDocument is a document with a good signature, made by Signer.
func signedDocument(t testing.TB, x *xmlsec) string {
	t.Helper()
	s := Signer{Key: x.key, Certificates: [][]byte{x.der}}
	template, err := s.Template("Sig", "ref")
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Complete(rand.Reader, []byte(`<r><a xml:id="ref">text</a>`+template+`</r>`), "Sig")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Every way in which a signature is refused names its rule; those that xmlsec1
// takes are the rules that it does not have.
func TestSignatureRules(t *testing.T) {
	x := newXmlsec(t)
	good := signedDocument(t, x)
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in %s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct {
		name, doc string
		rule      Rule
	}{
		{"good", good, ""},
		{"two ids of one element", replace(`xml:id="Sig"`, `xml:id="Sig" Id="Sig"`), ""},
		{"another text", replace(">text<", ">test<"), RuleDigest},
		{"another digest", replace("<DigestValue>", "<DigestValue>AAAA"), RuleDigest},
		{"another canonicalization", replace(`CanonicalizationMethod Algorithm="`+InclusiveC14N, `CanonicalizationMethod Algorithm="`+ExclusiveC14N), RuleSignature},
		{"another signature", replace("<SignatureValue>", "<SignatureValue>AAAA"), RuleSignature},
		{"another algorithm", replace("rsa-sha256", "rsa-sha512"), RuleSignature},
		{"an algorithm of another key", replace("rsa-sha256", "ecdsa-sha256"), RuleSignature},
		{"HMAC with the certificate as the key", replace("http://www.w3.org/2001/04/xmldsig-more#rsa-sha256", "http://www.w3.org/2000/09/xmldsig#hmac-sha1"), RuleAlgorithm},
		{"MD5", replace("http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#md5"), RuleAlgorithm},
		{"canonical XML 1.1", replace(InclusiveC14N, "http://www.w3.org/2006/12/xml-c14n11"), RuleAlgorithm},
		{"an output length", replace(`rsa-sha256"/>`, `rsa-sha256"><HMACOutputLength>0</HMACOutputLength></SignatureMethod>`), RuleStructure},
		{"XPath", replace("</Transforms>", `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>true</XPath></Transform></Transforms>`), RuleTransform},
		{"XSLT", replace("</Transforms>", `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/></Transforms>`), RuleTransform},
		{"base64", replace("</Transforms>", `<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#base64"/></Transforms>`), RuleTransform},
		{"two canonicalizations", replace("</Transforms>", strings.Repeat(`<Transform Algorithm="`+InclusiveC14N+`"/>`, 2)+`</Transforms>`), RuleTransform},
		{"another id", replace(`xml:id="ref"`, `xml:id="other"`), RuleReference},
		{"an Id that is no xml:id", replace(`xml:id="ref"`, `Id="ref"`), RuleReference},
		{"the whole document", replace(`URI="#ref"`, `URI=""`), RuleReference},
		{"a file", replace(`URI="#ref"`, `URI="file:///etc/passwd"`), RuleReference},
		{"the network", replace(`URI="#ref"`, `URI="http://127.0.0.1/"`), RuleReference},
		{"itself", replace(`URI="#ref"`, `URI="#Sig"`), RuleReference},
		{"an object", replace("</Signature>", "<Object/></Signature>"), RuleStructure},
		{"a manifest", replace("</SignedInfo>", "<Manifest/></SignedInfo>"), RuleStructure},
		{"no key", replace(good[strings.Index(good, "<KeyInfo>"):strings.Index(good, "</KeyInfo>")+len("</KeyInfo>")], ""), RuleStructure},
		{"no certificate", replace(good[strings.Index(good, "<X509Certificate>"):strings.Index(good, "</X509Data>")], ""), RuleKeyInfo},
		{"a revocation list", replace("</X509Data>", "<X509CRL>AAAA</X509CRL></X509Data>"), RuleKeyInfo},
		{"two X509Data", replace("</X509Data>", "</X509Data><X509Data/>"), RuleKeyInfo},
		{"another's KeyValue", replace("</X509Data>", "</X509Data><KeyValue><RSAKeyValue><Modulus>AAAA</Modulus><Exponent>AQAB</Exponent></RSAKeyValue></KeyValue>"), RuleKeyValue},
		{"a DSA KeyValue", replace("</X509Data>", "</X509Data><KeyValue><DSAKeyValue/></KeyValue>"), RuleKeyValue},
		{"an empty KeyValue", replace("</X509Data>", "</X509Data><KeyValue/>"), RuleKeyValue},
		{"text between elements", replace("<SignatureValue>", "x<SignatureValue>"), RuleStructure},
		{"a comment in a value", replace("<SignatureValue>", "<SignatureValue><!-- -->"), RuleValue},
		{"an odd canonicalization parameter", replace(`c14n-20010315"/>`, `c14n-20010315"><x/></CanonicalizationMethod>`), RuleStructure},
		{"one id twice", replace(">text<", `><b xml:id="ref"/>text<`), RuleDuplicateID},
		{"an id that is no name", replace(`xml:id="ref"`, `xml:id="1 2"`), RuleID},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := verifyAll(c.doc, x)
			var refusal *Error
			if c.rule == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.As(err, &refusal) || refusal.Rule != c.rule {
				t.Fatalf("got %v, want the rule %q", err, c.rule)
			}
			if c.rule == RuleDigest || c.rule == RuleSignature {
				if x.verify(t, []byte(c.doc)) == nil {
					t.Fatal("xmlsec1 takes it")
				}
			}
		})
	}
}

// verifyAll reads a document and verifies its signature.
func verifyAll(text string, x *xmlsec) error {
	doc, err := Parse([]byte(text), Limits{})
	if err != nil {
		return err
	}
	all := Signatures(doc.Root)
	if len(all) != 1 {
		return fmt.Errorf("%d signatures", len(all))
	}
	s, err := ReadSignature(all[0])
	if err != nil {
		return err
	}
	target, err := s.Verify(doc, x.key.Public())
	if err == nil && target.Name.Local != "a" {
		err = fmt.Errorf("verified <%s>", target.Name.Local)
	}
	return err
}

func ExampleElement_Canonical() {
	doc, err := Parse([]byte(`<list xmlns="http://example.org" xmlns:x="http://example.org/x" xml:lang="en">
<item b='2'   a = "1"/></list>`), Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	item := doc.Root.Elements()[0]
	fmt.Printf("%s\n", item.Canonical(Method{}, nil))
	fmt.Printf("%s\n", item.Canonical(Method{Exclusive: true}, nil))
	// Output:
	// <item xmlns="http://example.org" xmlns:x="http://example.org/x" a="1" b="2" xml:lang="en"></item>
	// <item xmlns="http://example.org" a="1" b="2"></item>
}
