package credentials

import (
	"encoding/base64"
	"encoding/pem"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestExpiryForms(t *testing.T) {
	want := time.Date(2030, 1, 31, 12, 34, 56, 0, time.UTC)
	for text, ok := range map[string]bool{
		"2030-01-31T12:34:56Z":          true,
		"2030-01-31t12:34:56z":          true,
		"2030-01-31T12:34:56":           true,
		"2030-01-31T12:34:56+00:00":     true,
		"2030-01-31T14:34:56+02:00":     true,
		"2030-01-31T05:34:56-0700":      true,
		"2030-01-31T12:34:56.000000Z":   true,
		"2030-01-31T12:34:56.000":       true,
		"2030-01-31T12:34:56.0+00:00":   true,
		"2030-01-31 12:34:56":           true,
		"2030-01-31 12:34:56+00:00":     true,
		"":                              false,
		"2030-01-31":                    false,
		"2030-02-31T12:34:56Z":          false,
		"2030-01-31T25:34:56Z":          false,
		"2030-01-31T12:34:56Z trailing": false,
		"tomorrow":                      false,
		"1893501296":                    false,
		"2030-01-31T12:34:56.0000000000000000000000000000000000000000000Z": false,
	} {
		got, err := parseTime(text)
		if (err == nil) != ok || (ok && !got.Equal(want)) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// The shapes that real credentials have count.
func TestShapesOfTheField(t *testing.T) {
	f := newFixture(t)
	bare := func(e *entity) string { // the first certificate alone, as base64
		block, _ := pem.Decode(e.chain)
		return base64.StdEncoding.EncodeToString(block.Bytes)
	}
	lines := func(s string, n int, end string) string {
		return regexp.MustCompile(`.{`+string(rune('0'+n/10))+string(rune('0'+n%10))+`}`).ReplaceAllString(s, "$0"+end)
	}
	edit := func(edits ...string) string {
		return completed(t, f.root, strings.NewReplacer(edits...).Replace(unsigned(f, f.alice, f.slice, "")), "ref0", "")
	}
	end := f.now.Add(time.Hour).UTC().Truncate(time.Second)
	expiry := "<expires>" + end.Format(time.RFC3339) + "</expires>"
	alice := "<owner_gid>" + string(f.alice.chain) + "</owner_gid>"
	reversed := regexp.MustCompile(`(?s)(<X509Certificate>.*?</X509Certificate>)(.*?)(<X509Certificate>.*?</X509Certificate>)`)
	for name, value := range map[string]string{
		"Emulab":                              emulabShape(t, f),
		"GENI tools":                          gcfShape(t, f),
		"no namespaces":                       edit(),
		"gid without armour":                  edit(alice, "<owner_gid>"+bare(f.alice)+"</owner_gid>"),
		"gid in lines of 76":                  edit(alice, "<owner_gid>\n"+lines(bare(f.alice), 76, "\r\n")+"</owner_gid>"),
		"PEM in lines of 10":                  edit(alice, "<owner_gid>\n-----BEGIN CERTIFICATE-----"+lines(bare(f.alice), 10, "\n\t ")+"-----END CERTIFICATE-----</owner_gid>"),
		"PEM in one line":                     edit(alice, "<owner_gid>-----BEGIN CERTIFICATE-----"+bare(f.alice)+"-----END CERTIFICATE-----</owner_gid>"),
		"PEM in CDATA":                        edit(alice, "<owner_gid><![CDATA["+string(f.alice.chain)+"]]></owner_gid>"),
		"no zone":                             edit(expiry, "<expires>"+end.Format("2006-01-02T15:04:05")+"</expires>"),
		"an offset":                           edit(expiry, "<expires>"+end.Format("2006-01-02T15:04:05")+"+00:00</expires>"),
		"a fraction":                          edit(expiry, "<expires>"+end.Format("2006-01-02T15:04:05")+".000000Z</expires>"),
		"white space in values":               edit("<type>privilege</type>", "<type>\n privilege\t</type>", "<name>*</name>", "<name> * </name>"),
		"can_delegate true":                   edit("<can_delegate>1<", "<can_delegate>TRUE<"),
		"can_delegate empty":                  edit("<can_delegate>1</can_delegate>", "<can_delegate/>"),
		"can_delegate absent":                 edit("<can_delegate>1</can_delegate>", ""),
		"more rights":                         edit("</privileges>", "<privilege><name>embed</name><can_delegate>0</can_delegate></privilege></privileges>"),
		"foreign elements":                    edit("<expires>", `<x:y xmlns:x="http://x"><x:expires>1990-01-01T00:00:00Z</x:expires></x:y><extensions/><expires>`),
		"comments between elements":           edit("<expires>", "<!-- expires -->\n<expires>"),
		"signer's chain, root first":          reversed.ReplaceAllString(f.sign(t, f.proj, f.alice, f.slice), "$3$2$1"),
		"a Signature of Emulab's indentation": strings.ReplaceAll(edit(), "<signatures>", "\n <signatures>\n  "),
		"delegated by Emulab's user":          f.delegate(t, emulabShape(t, f), f.alice, f.bob),
		"delegated with other namespaces":     f.delegate(t, gcfShape(t, f), f.alice, f.bob, rights("embed")),
	} {
		t.Run(name, func(t *testing.T) {
			who := f.alice
			if strings.HasPrefix(name, "delegated") {
				who = f.bob
			}
			g, err := f.may(t, who, sfa(value), Allocate, sliceURN)
			if err != nil {
				t.Fatalf("%v\n%s", err, value)
			}
			if g.Expires.Nanosecond() != 0 || g.Expires.After(end) {
				t.Errorf("expires %v", g.Expires)
			}
		})
	}
}

// Fields that cannot be read are refused in words.
func TestBrokenFields(t *testing.T) {
	f := newFixture(t)
	edit := func(edits ...string) string {
		return completed(t, f.root, strings.NewReplacer(edits...).Replace(unsigned(f, f.alice, f.slice, "")), "ref0", "")
	}
	for _, c := range []struct{ name, value, says string }{
		{"no expiry", edit("<expires>", "<expired>", "</expires>", "</expired>"), "without type or expires"},
		{"no type", edit("<type>privilege</type>", ""), "without type or expires"},
		{"odd expiry", edit("<expires>20", "<expires>x20"), "is no time"},
		{"odd can_delegate", edit("<can_delegate>1", "<can_delegate>maybe"), `can_delegate is "maybe"`},
		{"a privilege without a name", edit("<name>*</name>", ""), "without a name"},
		{"something else among the privileges", edit("</privileges>", "<right/></privileges>"), "<right> among the privileges"},
		{"two names", edit("<name>*</name>", "<name>info</name><name>*</name>"), "a second <name>"},
		{"two privileges", edit("</privileges>", "</privileges><privileges/>"), "a second <privileges>"},
		{"no owner", edit("<owner_gid>"+string(f.alice.chain)+"</owner_gid>", ""), "owner_gid: no certificate"},
		{"a target that is no certificate", edit("<target_gid>"+string(f.slice.chain), "<target_gid>urn:publicid:x"), "target_gid: "},
		{"a certificate that does not end", edit("-----END CERTIFICATE-----\n</owner_gid>", "</owner_gid>"), "does not end"},
		{"an empty parent", edit("<expires>", "<parent/><expires>"), "<parent> holds"},
		{"two parents", edit("<expires>", "<parent><credential/><credential/></parent><expires>"), "<parent> holds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.may(t, f.alice, sfa(c.value), Allocate, sliceURN)
			wantRefusal(t, err, c.says)
		})
	}
}
