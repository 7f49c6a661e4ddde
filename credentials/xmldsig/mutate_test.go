package xmldsig

import (
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// Of documents at random, damaged at random, xmllint reads all that we read,
// with the same canonical forms, and what we call not well-formed it refuses.
func TestDamagedDocumentsAgainstXmllint(t *testing.T) {
	n := 60
	if os.Getenv("CROFT_SOAK") != "" {
		n = 20_000
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CROFT_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CROFT_SEED=%d", seed)
	base := []string{}
	for _, doc := range odd {
		base = append(base, doc)
	}
	slices.Sort(base)
	compared := 0
	for i := range n {
		s := source{mathrand.New(mathrand.NewPCG(seed, uint64(i)))}
		doc := base[s.IntN(len(base))]
		if s.IntN(2) == 0 {
			doc = string(s.document())
		}
		for range s.IntN(3) {
			doc = s.damage(doc)
		}
		if own([]byte(doc)) {
			continue
		}
		compared++
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("%q", doc)
				}
			}()
			compareWithXmllint(t, []byte(doc))
		})
	}
	t.Logf("%d of %d compared", compared, n)
}

// damage changes a document in one place.
func (s source) damage(doc string) string {
	if doc == "" {
		return "<"
	}
	from := s.IntN(len(doc))
	to := min(len(doc), from+s.IntN(3))
	put := s.pick("", "<", ">", "&", ";", "&#", "&#x9;", "]]>", "<![CDATA[", "<!--", "-->", "--", "<?", "?>", "'", `"`, "=", "/", ":", "xmlns", "xmlns:p=''", " xml:id='a'",
		"\r", "\n", "\t", " ", "\x00", "\x01", "\xff", "\ufeff", "\uffff", "\U0001F600", "é", "a", "A", "0", "-", ".", "]", "!", "<a>", "</a>", "<a/>", "<!DOCTYPE a>", "&lt;", "&foo;", "&#0;", "&#x110000;")
	return doc[:from] + put + doc[to:]
}
