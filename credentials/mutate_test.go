package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/credentials/xmldsig"
)

// ownRules are the rules by which documents are refused that xmlsec1 takes.
var ownRules = []xmldsig.Rule{
	xmldsig.RuleDTD, xmldsig.RuleEntity, xmldsig.RuleEncoding, xmldsig.RuleVersion, xmldsig.RuleNamespace,
	xmldsig.RuleLimit, xmldsig.RuleDuplicateID, xmldsig.RuleID, xmldsig.RuleValue, xmldsig.RuleReference,
	xmldsig.RuleTransform, xmldsig.RuleAlgorithm, xmldsig.RuleKeyValue, xmldsig.RuleStructure, xmldsig.RuleKeyInfo,
}

// bySignature reports whether a document was refused for what xmlsec1 looks
// at, too.
func bySignature(err error) bool {
	var refusal *xmldsig.Error
	return errors.As(err, &refusal) && !slices.Contains(ownRules, refusal.Rule)
}

type mutator struct{ *rand.Rand }

func (m mutator) pick(from ...string) string { return from[m.IntN(len(from))] }

var (
	tag       = regexp.MustCompile(`</?[A-Za-z:]+[^<>]*>`)
	attribute = regexp.MustCompile(` [A-Za-z:]+="[^"<>]*"`)
	text      = regexp.MustCompile(`>[^<>]+<`)
	number    = regexp.MustCompile(`[0-9a-zA-Z+/=]`)
	element   = regexp.MustCompile(`(?s)<(type|serial|owner_gid|owner_urn|target_urn|uuid|expires|privilege|privileges|name|can_delegate|SignedInfo|Reference|Transforms|DigestValue|SignatureValue|KeyInfo|X509Data|X509Certificate|KeyValue|Modulus|Signature|signatures|credential|parent)( [^<>]*)?>.*?</(type|serial|owner_gid|owner_urn|target_urn|uuid|expires|privilege|privileges|name|can_delegate|SignedInfo|Reference|Transforms|DigestValue|SignatureValue|KeyInfo|X509Data|X509Certificate|KeyValue|Modulus|Signature|signatures|credential|parent)>`)
)

// somewhere returns one match of the expression.
func (m mutator) somewhere(doc string, re *regexp.Regexp) (from, to int) {
	all := re.FindAllStringIndex(doc, -1)
	if len(all) == 0 {
		return 0, 0
	}
	at := all[m.IntN(len(all))]
	return at[0], at[1]
}

// mutate changes a document in one of the ways in which documents differ
// without meaning something else, or seem not to.
func (m mutator) mutate(doc string) string {
	switch m.IntN(20) {
	case 0: // a byte
		at := m.IntN(len(doc))
		return doc[:at] + string(rune(32+m.IntN(95))) + doc[at+1:]
	case 1: // bytes away
		at := m.IntN(len(doc))
		return doc[:at] + doc[min(len(doc), at+1+m.IntN(3)):]
	case 2: // something between tags
		_, at := m.somewhere(doc, tag)
		return doc[:at] + m.pick(" ", "\n", "\t", "\r", "\r\n", "<!-- c -->", "<?p i?>", "<![CDATA[]]>", "<![CDATA[ ]]>", "<x/>", "&#10;", "x", "<KeyValue/>", "<Signature/>") + doc[at:]
	case 3: // something in a text
		from, to := m.somewhere(doc, text)
		if to-from < 3 {
			return doc
		}
		at := from + 1 + m.IntN(to-from-2)
		return doc[:at] + m.pick(" ", "\n", "\r\n", "<!---->", "<?p?>", "<![CDATA[]]>", "&#65;", "&#x0a;", "=", "A") + doc[at:]
	case 4: // a character of a text by its number
		from, to := m.somewhere(doc, text)
		if to-from < 3 {
			return doc
		}
		at := from + 1 + m.IntN(to-from-2)
		return doc[:at] + fmt.Sprintf("&#%d;", doc[at]) + doc[at+1:]
	case 5: // a text in CDATA
		from, to := m.somewhere(doc, text)
		if to-from < 2 {
			return doc
		}
		return doc[:from+1] + "<![CDATA[" + doc[from+1:to-1] + "]]>" + doc[to-1:]
	case 6: // an attribute away
		from, to := m.somewhere(doc, attribute)
		return doc[:from] + doc[to:]
	case 7: // white space around an attribute
		from, to := m.somewhere(doc, attribute)
		return doc[:from] + m.pick("\n", "  ", "\t") + strings.Replace(doc[from:to], "=", m.pick(" =", "= ", " = \n"), 1) + doc[to:]
	case 8: // other quotes
		from, to := m.somewhere(doc, attribute)
		return doc[:from] + strings.ReplaceAll(doc[from:to], `"`, `'`) + doc[to:]
	case 9: // an attribute more
		from, to := m.somewhere(doc, tag)
		if to-from < 3 || doc[from+1] == '/' {
			return doc
		}
		end := from + strings.IndexAny(doc[from:to], " />")
		return doc[:end] + m.pick(` xmlns:n="http://n"`, ` xmlns="http://n"`, ` xmlns=""`, ` xml:lang="en"`, ` xml:base="/x"`, ` a="b"`, ` Id="ref0"`, ` id="x"`, ` xml:id="y"`,
			` xmlns:ds="http://www.w3.org/2000/09/xmldsig#"`, ` xmlns:xsi="http://other"`, ` xmlns:r="rel"`) + doc[end:]
	case 10: // an element away
		from, to := m.somewhere(doc, element)
		return doc[:from] + doc[to:]
	case 11: // an element twice
		from, to := m.somewhere(doc, element)
		return doc[:to] + doc[from:to] + doc[to:]
	case 12: // an element elsewhere
		from, to := m.somewhere(doc, element)
		moved := doc[from:to]
		rest := doc[:from] + doc[to:]
		_, at := m.somewhere(rest, tag)
		return rest[:at] + moved + rest[at:]
	case 13: // an element in another
		from, to := m.somewhere(doc, element)
		return doc[:from] + "<w>" + doc[from:to] + "</w>" + doc[to:]
	case 14: // two elements change places
		a, b := m.somewhere(doc, element)
		c, d := m.somewhere(doc, element)
		if b > c {
			return doc
		}
		return doc[:a] + doc[c:d] + doc[b:c] + doc[a:b] + doc[d:]
	case 15: // an empty element's two forms
		if at := strings.Index(doc, "></Transform>"); at >= 0 && m.IntN(2) == 0 {
			return doc[:at] + "/>" + doc[at+len("></Transform>"):]
		}
		return strings.Replace(doc, "<uuid></uuid>", "<uuid/>", 1)
	case 16: // another algorithm
		from, to := m.somewhere(doc, regexp.MustCompile(`Algorithm="[^"]*"`))
		return doc[:from] + `Algorithm="` + m.pick(xmldsig.InclusiveC14N, xmldsig.ExclusiveC14N, xmldsig.InclusiveC14NComments, xmldsig.ExclusiveC14NComments,
			"http://www.w3.org/2006/12/xml-c14n11", "http://www.w3.org/2000/09/xmldsig#base64", "http://www.w3.org/2000/09/xmldsig#hmac-sha1",
			"http://www.w3.org/2000/09/xmldsig#rsa-sha1", "http://www.w3.org/2000/09/xmldsig#sha1", "http://www.w3.org/2000/09/xmldsig#enveloped-signature") + `"` + doc[to:]
	case 17: // a prologue
		return m.pick("\xef\xbb\xbf", " ", "\n", "<!-- c -->", "<!DOCTYPE signed-credential>", "<?p?>") + m.pick(doc, strings.TrimPrefix(doc, `<?xml version="1.0" encoding="UTF-8"?>`))
	case 18: // line ends
		return strings.ReplaceAll(doc, "\n", m.pick("\r\n", "\r", "", "\n\n", " "))
	default: // a digit or letter
		from, _ := m.somewhere(doc, number)
		return doc[:from] + m.pick("0", "A", "=", "/", "z", "") + doc[from+1:]
	}
}

// xmlsec1Refuses verifies the signature that the XPath expression finds in each
// of the files, in runs of batch files, and returns what it says of those that
// it refuses.
func xmlsec1Refuses(t testing.TB, root, xpath string, batch int, files []string) map[string]string {
	t.Helper()
	program, err := exec.LookPath("xmlsec1")
	if err != nil {
		t.Skip("needs xmlsec1 (apt-get install xmlsec1)")
	}
	refused := map[string]string{}
	var check func(batch []string)
	check = func(batch []string) {
		// It stops at the first file that it refuses.
		out, err := exec.Command(program, append([]string{"--verify", "--trusted-pem", root, "--node-xpath", xpath}, batch...)...).CombinedOutput()
		switch {
		case err == nil:
		case len(batch) == 1:
			refused[batch[0]] = string(out)
		default:
			check(batch[:len(batch)/2])
			check(batch[len(batch)/2:])
		}
	}
	for batch := range slices.Chunk(files, batch) {
		check(batch)
	}
	return refused
}

// signatureOver is the XPath expression for the signature over an id.
func signatureOver(id string) string {
	return "//*[local-name()='Signature' and namespace-uri()='" + xmldsig.Namespace + "'][.//*[local-name()='Reference' and @URI='#" + id + "']]"
}

// chainIDs returns the ids of a credential and of those that it was delegated
// from, if each has one signature.
func chainIDs(doc string) []string {
	d, err := readDocument([]byte(doc))
	if err != nil {
		return nil
	}
	var ids []string
	for e := d.credential; e != nil; {
		if strings.Count(doc, `"#`+e.ID()+`"`) != 1 {
			return nil
		}
		ids = append(ids, e.ID())
		f, err := readFields(e)
		if err != nil {
			return nil
		}
		e = f.parent
	}
	return ids
}

// Nothing counts that xmlsec1 refuses, and what xmlsec1 takes and does not
// count is refused by a rule of our own.
func TestMutationsAgainstXmlsec1(t *testing.T) {
	// xmlsec1 checks many good documents in one run, and bad ones one by one.
	n, most := 2000, 150
	if os.Getenv("CROFT_SOAK") != "" {
		n, most = 20_000, 20_000
	}
	f := newFixture(t)
	root := filepath.Join(f.dir, "root.pem")
	slice := f.sign(t, f.root, f.alice, f.slice)
	base := []string{
		slice,
		f.sign(t, f.proj, f.alice, f.slice, func(i *Issue) { i.SHA1 = true }),
		f.sign(t, f.root, f.alice, f.alice, func(i *Issue) { i.Exclusive = true }),
		emulabShape(t, f),
		gcfShape(t, f),
		f.delegate(t, slice, f.alice, f.bob, expires(f.now.Add(time.Hour))),
		f.speaksFor(t, f.alice, f.tool),
	}
	dir := t.TempDir()
	accepted, refused := map[string][]string{}, map[string][]string{} // by XPath
	why, changes := map[string]error{}, map[string]string{}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CROFT_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CROFT_SEED=%d", seed)
	a := f.trust.current()
	good, bad := 0, 0
	for i := range n {
		m := mutator{rand.New(rand.NewPCG(seed, uint64(i)))}
		original := base[m.IntN(len(base))]
		doc, change := original, ""
		for range 1 + m.IntN(3) {
			before := doc
			doc = m.mutate(doc)
			change += difference(before, doc) + "\n"
		}
		if doc == original {
			continue
		}
		_, err := f.trust.read(a, doc)
		name := filepath.Join(dir, fmt.Sprintf("%d.xml", i))
		changes[name], why[name] = change, err
		ids := chainIDs(doc)
		switch {
		case err == nil:
			good++
			writeFile(t, name, []byte(doc))
			for _, id := range ids {
				accepted[signatureOver(id)] = append(accepted[signatureOver(id)], name)
			}
		case bySignature(err) && ids == nil: // not well-formed
			bad++
			writeFile(t, name, []byte(doc))
			refused["//*"] = append(refused["//*"], name)
		case bySignature(err) && len(ids) == 1:
			bad++
			writeFile(t, name, []byte(doc))
			refused[signatureOver(ids[0])] = append(refused[signatureOver(ids[0])], name)
		}
	}
	t.Logf("%d mutants: %d accepted, %d refused by rules that xmlsec1 has", n, good, bad)
	if good < n/20 || bad < n/20 {
		t.Fatal("too few on one side to compare")
	}
	for xpath, files := range accepted {
		for file, output := range xmlsec1Refuses(t, root, xpath, 64, files) {
			t.Errorf("accepted, but xmlsec1 refuses:\n%s\n%s", output, changes[file])
		}
	}
	for xpath, files := range refused {
		files = files[:min(len(files), most)]
		most -= len(files)
		says := xmlsec1Refuses(t, root, xpath, 1, files)
		for _, file := range files {
			if _, ok := says[file]; !ok {
				t.Errorf("refused (%v), but xmlsec1 accepts:\n%s", why[file], changes[file])
			}
		}
	}
}

// difference shows where two documents differ.
func difference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	j := 0
	for j < len(a)-i && j < len(b)-i && a[len(a)-1-j] == b[len(b)-1-j] {
		j++
	}
	from := max(0, i-40)
	return fmt.Sprintf("%q became %q", a[from:min(len(a)-j+20, len(a))], b[from:min(len(b)-j+20, len(b))])
}

// emulabShape is a credential as Emulab writes it: chains in any order,
// X509Data with names, KeyValue, a Signature in its own lines.
func emulabShape(t testing.TB, f *fixture) string {
	template := `<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<signed-credential xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.protogeni.net/resources/credential/credential.xsd" xsi:schemaLocation="http://www.protogeni.net/resources/credential/ext/policy/1 http://www.protogeni.net/resources/credential/ext/policy/1/policy.xsd">
 <credential xml:id="ref1F2E3D4C">
  <type>privilege</type>
  <serial>1234</serial>
  <owner_gid>` + string(f.alice.chain) + `</owner_gid>
  <target_gid>
` + string(f.slice.chain) + `  </target_gid>
  <uuid>33178d77-a930-40b1-9469-3aae08755743</uuid>
  <expires>` + f.now.Add(time.Hour).UTC().Format("2006-01-02T15:04:05Z") + `</expires>
  <privileges><privilege><name>*</name><can_delegate>1</can_delegate></privilege></privileges>
  <extensions xmlns="http://www.protogeni.net/resources/credential/ext/policy/1"><policy_exceptions/></extensions>
 </credential>
 <signatures>
` + signatureTemplate("ref1F2E3D4C") + ` </signatures>
</signed-credential>
`
	return xmlsec1Signs(t, template, f.root)
}

// gcfShape is a credential as the GENI tools write it.
func gcfShape(t testing.TB, f *fixture) string {
	template := `<?xml version="1.0" ?><signed-credential xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.planet-lab.org/resources/sfa/credential.xsd" xsi:schemaLocation="http://www.planet-lab.org/resources/sfa/ext/policy/1 http://www.planet-lab.org/resources/sfa/ext/policy/1/policy.xsd"><credential xml:id="ref0"><type>privilege</type><serial>8</serial><owner_gid>` +
		string(f.alice.chain) + `</owner_gid><owner_urn>` + aliceURN + `</owner_urn><target_gid>` + string(f.slice.chain) + `</target_gid><target_urn>` + sliceURN +
		`</target_urn><uuid/><expires>` + f.now.Add(time.Hour).UTC().Format("2006-01-02T15:04:05") +
		`</expires><privileges><privilege><name>embed</name><can_delegate>true</can_delegate></privilege></privileges></credential><signatures>` +
		signatureTemplate("ref0") + `</signatures></signed-credential>`
	return xmlsec1Signs(t, template, f.root)
}

func signatureTemplate(id string) string {
	return `<Signature xml:id="Sig_` + id + `" xmlns="http://www.w3.org/2000/09/xmldsig#">
  <SignedInfo>
   <CanonicalizationMethod Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315"/>
   <SignatureMethod Algorithm="http://www.w3.org/2000/09/xmldsig#rsa-sha1"/>
   <Reference URI="#` + id + `">
    <Transforms>
     <Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature" />
    </Transforms>
    <DigestMethod Algorithm="http://www.w3.org/2000/09/xmldsig#sha1"/>
    <DigestValue></DigestValue>
   </Reference>
  </SignedInfo>
  <SignatureValue />
  <KeyInfo>
   <X509Data>
    <X509SubjectName/>
    <X509IssuerSerial/>
    <X509Certificate/>
   </X509Data>
   <KeyValue />
  </KeyInfo>
 </Signature>
`
}

// xmlsec1Signs completes the templates of a document with xmlsec1.
func xmlsec1Signs(t testing.TB, template string, by *entity) string {
	t.Helper()
	program, err := exec.LookPath("xmlsec1")
	if err != nil {
		t.Skip("needs xmlsec1 (apt-get install xmlsec1)")
	}
	dir := t.TempDir()
	files := []string{writeFile(t, filepath.Join(dir, "key.pem"), by.keyPEM(t))}
	for i, c := range by.certificates(t) {
		files = append(files, writeFile(t, filepath.Join(dir, fmt.Sprintf("%d.pem", i)), pemOf(c)))
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, "--sign", "--privkey-pem", strings.Join(files, ","), writeFile(t, filepath.Join(dir, "t.xml"), []byte(template)))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("xmlsec1 --sign: %v: %s", err, stderr.String())
	}
	return string(out)
}
