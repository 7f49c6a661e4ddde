package credentials

import (
	"slices"
	"strings"

	"croft/internal/openssl"
	"croft/urn"
)

// nameOf returns the URN that a certificate carries in its subjectAltName.
// One without, and one with several, names nobody.
func nameOf(c *openssl.Certificate) (urn.URN, error) {
	var found urn.URN
	for _, uri := range c.URIs {
		if !isPublicID(uri) {
			continue
		}
		name, err := urn.Parse(uri)
		if err != nil {
			return urn.URN{}, because(err, "the certificate of %s", c)
		}
		if !found.IsZero() && !found.Equal(name) {
			return urn.URN{}, refuse("the certificate of %s carries two URNs, %s and %s; want one", c, found, name)
		}
		found = name
	}
	if found.IsZero() {
		return urn.URN{}, refuse("the certificate of %s carries no URN (urn:publicid:IDN+…) in its subjectAltName", c)
	}
	return found, nil
}

// hasPublicID reports whether a certificate carries any publicid URN, be it
// broken.
func hasPublicID(c *openssl.Certificate) bool { return slices.ContainsFunc(c.URIs, isPublicID) }

func isPublicID(uri string) bool {
	const start = "urn:publicid:"
	return len(uri) >= len(start) && strings.EqualFold(uri[:len(start)], start)
}

// isAuthority reports whether a URN names an authority. Federations write the
// role of an authority into its name (sa, ma, ca, cm, root) or, seldom, into
// its type ("authority+sa" became type "authority").
func isAuthority(u urn.URN) bool { return strings.EqualFold(string(u.Type), string(urn.AuthorityType)) }
