package xmldsig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// odd are documents in which canonicalization has something to do.
var odd = map[string]string{
	"attributes sorted":        `<a z="1" b:y="2" b:a="3" a="4" c:y="5" xmlns:c="http://c" xmlns:b="http://z"/>`,
	"default namespace":        `<a xmlns="http://x"><b xmlns=""><c xmlns="http://x"/></b><d xmlns="http://x"/></a>`,
	"undeclared default":       `<a><b xmlns=""><c xmlns="http://c"><d xmlns=""/></c></b></a>`,
	"superfluous declarations": `<p:a xmlns:p="http://p"><p:b xmlns:p="http://p"><q:c xmlns:q="http://p" xmlns:p="http://other"/></p:b></p:a>`,
	"same prefix, other use":   `<a xmlns:p="http://1"><b p:x="1"><p:c xmlns:p="http://2"><p:d xmlns:p="http://1"/></p:c></b></a>`,
	"unused declarations":      `<a xmlns:u="http://u" xmlns:v="http://v"><b u:x="1"/><v:c/></a>`,
	"xml attributes":           `<a xml:lang="en" xml:space="preserve"><b xml:id="x" xml:lang="de"/></a>`,
	"references in text":       "<a>&amp;&lt;&gt;&quot;&apos;&#13;&#xD;&#10;&#9;&#x1F600;é&#233;</a>",
	"references in values":     `<a b="&amp;&lt;&gt;&quot;&apos;&#13;&#xd;&#10;&#9;&#32;x" c='"'/>`,
	"white space in values":    "<a b='x\ty\nz\r\nw\rv  u'/>",
	"line ends":                "<a>\r\n\r<b>\r\r\n</b>\n</a>\r\n",
	"cdata":                    "<a>x<![CDATA[<&>]]]]><![CDATA[>\r\n]]>y<![CDATA[]]></a>",
	"comments":                 "<!-- before --><a><!-- in\r\n --><b/><!----></a><!-- after -->",
	"instructions":             "<?x  y z ?><?x?>\n<a><?p a\r\nb?><?q?></a>\n<?r s?>\n<?t?>",
	"xml declaration":          "<?xml version='1.0' encoding='utf-8' standalone='no'?>\n<a/>",
	"byte order mark":          "\xef\xbb\xbf<a/>",
	"names":                    "<é:ü xmlns:é='http://e'><_a.b-c·d é:ö='1'/></é:ü>",
	"empty and not":            "<a><b></b><c/><d ></d ><e\n/></a>",
	"odd uri":                  `<a xmlns="urn:x:y" xmlns:b="mailto:a@b"><b:c/></a>`,
	"sorting by namespace":     `<a xmlns:a="http://b" xmlns:b="http://a" a:x="1" b:x="2" x="3"/>`,
	"beyond the basic plane":   "<a b='\U00010000\U0001F600\ufffd'>\U0010FFFD</a>",
	"relative namespace":       `<a xmlns="foo"/>`,
	"relative unused":          `<a xmlns:x="../foo"/>`,
}

// refused are documents that are not well-formed, or that this package never
// reads. xmllint, too, refuses those that name no rule of our own.
var refused = map[string]struct {
	doc string
	own Rule
}{
	"empty":                  {doc: ""},
	"text only":              {doc: "hello"},
	"two roots":              {doc: "<a/><b/>"},
	"text after":             {doc: "<a/>x"},
	"cdata only":             {doc: "<![CDATA[x]]>"},
	"end tag only":           {doc: "</a>"},
	"not closed":             {doc: "<a><b></b>"},
	"closed twice":           {doc: "<a></a></a>"},
	"wrong end":              {doc: "<a></b>"},
	"attribute twice":        {doc: "<a b='1' b='2'/>"},
	"same attribute":         {doc: "<a xmlns:p='http://x' xmlns:q='http://x' p:b='1' q:b='2'/>", own: RuleSyntax},
	"declared twice":         {doc: "<a xmlns:p='http://x' xmlns:p='http://y'/>"},
	"no quotes":              {doc: "<a b=1/>"},
	"no space":               {doc: "<a b='1'c='2'/>"},
	"less in value":          {doc: "<a b='<'/>"},
	"bare ampersand":         {doc: "<a>x & y</a>"},
	"unknown entity":         {doc: "<a>&foo;</a>"},
	"control character":      {doc: "<a>\x01</a>"},
	"reference to it":        {doc: "<a>&#1;</a>"},
	"reference to surrogate": {doc: "<a>&#xD800;</a>"},
	"huge reference":         {doc: "<a>&#99999999999;</a>"},
	"reference of nothing":   {doc: "<a>&#;</a>"},
	"noncharacter":           {doc: "<a>\ufffe</a>"},
	"bad utf-8":              {doc: "<a>\xff</a>"},
	"overlong utf-8":         {doc: "<a>\xc0\xaf</a>"},
	"cdata end":              {doc: "<a>]]></a>"},
	"dashes in comment":      {doc: "<a><!-- -- --></a>"},
	"comment not closed":     {doc: "<a><!-- </a>"},
	"declaration late":       {doc: "<a/><?xml version='1.0'?>"},
	"declaration later":      {doc: " <?xml version='1.0'?><a/>"},
	"bad name":               {doc: "<1a/>"},
	"version missing":        {doc: "<?xml encoding='UTF-8'?><a/>"},
	"dtd":                    {doc: "<!DOCTYPE a><a/>", own: RuleDTD},
	"entities":               {doc: "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", own: RuleDTD},
	"external entity":        {doc: "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>", own: RuleDTD},
	"version 1.1":            {doc: "<?xml version='1.1'?><a/>", own: RuleVersion},
	"zero byte at the end":   {doc: "<a/>\x00<b/>", own: RuleEncoding},
	"latin 1":                {doc: "<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>", own: RuleEncoding},
	"unbound prefix":         {doc: "<p:a/>", own: RuleNamespace},
	"unbound attribute":      {doc: "<a p:b=''/>", own: RuleNamespace},
	"xml declared":           {doc: "<a xmlns:xml='http://www.w3.org/XML/1998/namespace'/>", own: RuleNamespace},
	"prefix undeclared":      {doc: "<a xmlns:p='http://x'><b xmlns:p=''/></a>", own: RuleNamespace},
	"two colons":             {doc: "<a:b:c xmlns:a='http://x'/>", own: RuleNamespace},
}

func xmllint(t testing.TB, flag string, doc []byte) ([]byte, error) {
	t.Helper()
	program, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("needs xmllint (apt-get install libxml2-utils)")
	}
	cmd := exec.Command(program, "--nonet", flag, "-")
	cmd.Stdin = bytes.NewReader(doc)
	return cmd.Output()
}

// Whole documents have the canonical forms that xmllint gives them.
func TestCanonicalFormsAreXmllints(t *testing.T) {
	for name, doc := range odd {
		t.Run(name, func(t *testing.T) { compareWithXmllint(t, []byte(doc)) })
	}
}

func compareWithXmllint(t testing.TB, doc []byte) {
	t.Helper()
	for flag, m := range map[string]Method{"--c14n": {Comments: true}, "--exc-c14n": {Comments: true, Exclusive: true}} {
		want, lintErr := xmllint(t, flag, doc)
		parsed, err := Parse(doc, Limits{Bytes: 64 << 20, Elements: 1 << 20, Depth: 250, Attributes: 1000, Namespaces: 1 << 20})
		var got []byte
		if err == nil {
			got = parsed.Canonical(m)
		}
		if (err == nil) != (lintErr == nil) {
			t.Fatalf("%s: we say %v, xmllint says %v", flag, err, lintErr)
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%s:\n got %q\nwant %q", flag, clip(got, want), clip(want, got))
		}
	}
}

// clip returns a around the place where it begins to differ from b.
func clip(a, b []byte) []byte {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return a[max(0, i-80):min(len(a), i+120)]
}

func TestRefusedDocuments(t *testing.T) {
	for name, c := range refused {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.doc), Limits{})
			var refusal *Error
			if !errors.As(err, &refusal) {
				t.Fatalf("got %v", err)
			}
			if c.own != "" {
				if refusal.Rule != c.own {
					t.Fatalf("refused by the rule %q, want %q: %v", refusal.Rule, c.own, err)
				}
				return
			}
			if _, err := xmllint(t, "--noout", []byte(c.doc)); err == nil {
				t.Fatal("xmllint takes it")
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct{ name, doc string }{
		{"bytes", "<a>" + strings.Repeat("x", 1<<20) + "</a>"},
		{"elements", "<a>" + strings.Repeat("<b/>", 20_000) + "</a>"},
		{"depth", strings.Repeat("<a>", 129) + strings.Repeat("</a>", 129)},
		{"attributes", "<a" + manyAttributes(65) + "/>"},
		{"namespaces", "<a>" + strings.Repeat("<b xmlns='http://x'/>", 257) + "</a>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.doc), Limits{})
			var refusal *Error
			if !errors.As(err, &refusal) || refusal.Rule != RuleLimit {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func manyAttributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " a%d=''", i)
	}
	return b.String()
}

// Every XML document of the corpus, if it is at hand, has xmllint's canonical
// forms.
func TestCanonicalFormsOfTheCorpus(t *testing.T) {
	root := corpus(t)
	checked := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		doc, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(doc) > 4<<20 || !bytes.HasPrefix(bytes.TrimSpace(doc), []byte("<")) || bytes.Contains(doc, []byte("<!DOCTYPE")) || own(doc) {
			return nil
		}
		// Some of them in the short form.
		if checked++; os.Getenv("CROFT_SOAK") == "" && checked%5 != 0 {
			return nil
		}
		t.Run(filepath.Base(path), func(t *testing.T) { compareWithXmllint(t, doc) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d documents", checked)
}

// own reports whether a document is refused by a rule of ours that xmllint
// does not have.
func own(doc []byte) bool {
	_, err := Parse(doc, Limits{Bytes: 64 << 20, Elements: 1 << 20, Depth: 250, Attributes: 1000, Namespaces: 1 << 20})
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Rule != RuleSyntax
}

// corpus finds the folder shared/corpus beside the repository.
func corpus(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above")
		}
	}
	root := filepath.Join(dir, "..", "shared", "corpus")
	if _, err := os.Stat(root); err != nil {
		t.Skip("no corpus beside the repository")
	}
	return root
}
