package credentials

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// The log says which credential gave a right and holds nothing that could be
// used again.
func TestGrantsCanBeLogged(t *testing.T) {
	f := newFixture(t)
	value := f.sign(t, f.root, f.alice, f.slice)
	g, err := f.may(t, f.alice, sfa(value), Allocate, sliceURN)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("call", "credential", g.Credential)
	for _, want := range []string{g.Credential.Digest, aliceURN, sliceURN, `"signer":"urn:publicid:IDN+example.org+authority+sa"`, `"delegations":0`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, &out)
		}
	}
	if strings.Contains(out.String(), "MII") || out.Len() > 1000 {
		t.Errorf("too much: %s", &out)
	}
	if s := g.Credential.String(); !strings.Contains(s, "on "+sliceURN) || strings.Contains(s, g.Credential.Digest) {
		t.Errorf("%s", s)
	}
}
