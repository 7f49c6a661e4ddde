package credentials

import (
	"path/filepath"
	"testing"
	"time"
)

// What Sign and Delegate make, xmlsec1 verifies, whatever the algorithm.
func TestSignedCredentialsVerifyWithXmlsec1(t *testing.T) {
	root := issue(t, nil, spec{urn: "urn:publicid:IDN+example.org+authority+sa", ca: true})
	alice := issue(t, root, spec{urn: "urn:publicid:IDN+example.org+user+alice"})
	bob := issue(t, root, spec{urn: "urn:publicid:IDN+example.org+user+bob"})
	slice := issue(t, root, spec{urn: "urn:publicid:IDN+example.org:proj+slice+exp"})
	elliptic := issue(t, root, spec{urn: "urn:publicid:IDN+example.org+authority+ca", key: ecdsaKey(t)})
	trusted := writeFile(t, filepath.Join(t.TempDir(), "root.pem"), root.chain)

	for _, c := range []struct {
		name            string
		issuer          *entity
		sha1, exclusive bool
	}{
		{"rsa-sha256", root, false, false},
		{"rsa-sha1", root, true, false},
		{"exclusive", root, false, true},
		{"ecdsa-sha256", elliptic, false, false},
		{"ecdsa-sha1 exclusive", elliptic, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := Issue{Issuer: c.issuer.issuer(), Owner: alice.chain, Target: slice.chain,
				Privileges: []Privilege{{"*", true}}, Expires: time.Now().Add(time.Hour)}
			i.SHA1, i.Exclusive = c.sha1, c.exclusive
			signed, err := Sign(i)
			if err != nil {
				t.Fatal(err)
			}
			if err := xmlsec1(t, signed, "", trusted); err != nil {
				t.Fatalf("%v\n%s", err, signed)
			}
			d := Issue{Issuer: alice.issuer(), Owner: bob.chain, Privileges: []Privilege{{"*", false}}, Expires: time.Now().Add(time.Minute)}
			d.SHA1, d.Exclusive = c.sha1, c.exclusive
			delegated, err := Delegate(signed, d)
			if err != nil {
				t.Fatal(err)
			}
			for _, xpath := range []string{"(//*[local-name()='Signature'])[1]", "(//*[local-name()='Signature'])[2]"} {
				if err := xmlsec1(t, delegated, xpath, trusted); err != nil {
					t.Fatalf("signature %s: %v\n%s", xpath, err, delegated)
				}
			}
		})
	}
}
