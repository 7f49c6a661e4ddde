package urn_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"croft/urn"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       urn.URN // zero: it must be refused
	}{
		{"slice", "urn:publicid:IDN+example.org+slice+exp1", urn.URN{Authority: "example.org", Type: urn.Slice, Name: "exp1"}},
		{"sub-authority", "urn:publicid:IDN+emulab.net:proj+slice+exp1", urn.URN{Authority: "emulab.net:proj", Type: urn.Slice, Name: "exp1"}},
		{"capital I", "urn:publicId:IDN+localhost+authority+am", urn.URN{Authority: "localhost", Type: urn.AuthorityType, Name: "am"}},
		{"a + in the name", "urn:publicid:IDN+a+interface+pc1:eth0+x", urn.URN{Authority: "a", Type: urn.Interface, Name: "pc1:eth0+x"}},
		{"white space around", " urn:publicid:IDN+a+node+pc1\n", urn.URN{Authority: "a", Type: urn.Node, Name: "pc1"}},
		{"empty", "", urn.URN{}},
		{"no publicid", "urn:uuid:9b4d0a6e-3a53-4f7e-8d55-111111111111", urn.URN{}},
		{"no name", "urn:publicid:IDN+a+node+", urn.URN{}},
		{"no authority", "urn:publicid:IDN++node+pc1", urn.URN{}},
		{"two parts", "urn:publicid:IDN+a+node", urn.URN{}},
		{"a line end inside", "urn:publicid:IDN+a+node+pc\n1", urn.URN{}},
		{"markup", "urn:publicid:IDN+a+node+<!-- -->pc1", urn.URN{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := urn.Parse(test.text)
			if test.want.IsZero() {
				if err == nil {
					t.Errorf("read as %#v, want an error", got)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("read as %#v, %v; want %#v", got, err, test.want)
			}
		})
	}
}

func TestEqual(t *testing.T) {
	a := urn.MustParse("urn:publicid:IDN+Example.ORG:Proj+slice+exp")
	for text, want := range map[string]bool{
		"urn:publicid:IDN+example.org:proj+slice+exp": true,
		"urn:publicid:IDN+example.org:proj+Slice+exp": true,
		"urn:publicid:IDN+example.org:proj+slice+EXP": false,
		"urn:publicid:IDN+example.org+slice+exp":      false,
	} {
		if got := a.Equal(urn.MustParse(text)); got != want {
			t.Errorf("equal to %s: %v, want %v", text, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		a, b urn.Authority
		want bool
	}{
		{"example.org", "EXAMPLE.org", true},
		{"example.org", "example.org:proj", true},
		{"example.org:proj", "example.org", false},
		{"example.org", "example.organic", false},
		{"", "example.org", false},
	} {
		if got := test.a.Covers(test.b); got != test.want {
			t.Errorf("%q covers %q: %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

func TestJSON(t *testing.T) {
	type record struct{ URN urn.URN }
	for _, want := range []record{{}, {urn.MustParse("urn:publicid:IDN+a+node+pc1")}} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got record
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Errorf("%s came back as %+v, %v", data, got, err)
		}
	}
}

func ExampleNew() {
	u, err := urn.New("example.org:proj", urn.Slice, "exp1")
	fmt.Println(u, err)
	fmt.Println(u.Authority.Top())
	// Output:
	// urn:publicid:IDN+example.org:proj+slice+exp1 <nil>
	// example.org
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"urn:publicid:IDN+example.org:proj+slice+exp1", "urn:publicid:IDN+++", "urn:publicId:IDN+a+b+c+d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := urn.Parse(s)
		if err != nil {
			return
		}
		again, err := urn.Parse(u.String())
		if err != nil || again != u {
			t.Errorf("%q is read as %#v, and that as %#v, %v", s, u, again, err)
		}
		if !u.Equal(u.Canonical()) {
			t.Errorf("%q differs from its canonical form", s)
		}
	})
}
