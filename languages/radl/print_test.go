package radl_test

import (
	"bytes"
	"testing"

	"croft/languages/radl"
)

// roundTrip checks that a document is the same in the text form, and in JSON,
// after it was written and read once.
func roundTrip(t testing.TB, d *radl.Document) {
	t.Helper()
	inJSON, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := radl.Parse(inJSON, nil)
	if err != nil {
		t.Fatalf("its JSON is not read: %v\n%s", err, inJSON)
	}
	twice, err := again.JSON()
	if err != nil || !bytes.Equal(inJSON, twice) {
		t.Errorf("JSON that was read is written differently (%v):\n%s\nbefore:\n%s", err, twice, inJSON)
	}
	inText, err := d.Text()
	if err != nil {
		return // it was JSON, and holds what the text form cannot
	}
	again, _, err = radl.Parse(inText, nil)
	if err != nil {
		t.Fatalf("its text is not read: %v\n%s", err, inText)
	}
	if text, err := again.Text(); err != nil || !bytes.Equal(text, inText) {
		t.Errorf("text that was read is written differently (%v):\n%s\nbefore:\n%s", err, text, inText)
	}
	if text, err := again.JSON(); err != nil || !bytes.Equal(trim(text), trim(inJSON)) {
		t.Errorf("through text, JSON is different (%v):\n%s\nbefore:\n%s", err, text, inJSON)
	}
}

// trim takes off line breaks at the ends of recipes, which the text form
// cannot do without.
func trim(text []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(`"\n`), []byte(`"`)), []byte(`\n"`), []byte(`"`))
}

func TestRoundTrip(t *testing.T) {
	for name, text := range files(t, "good") {
		t.Run(name, func(t *testing.T) {
			d, _, err := radl.Parse(text, nil)
			if err != nil {
				t.Fatal(err)
			}
			roundTrip(t, d)
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		for _, text := range files(f, folder) {
			f.Add(text)
		}
	}
	f.Add([]byte("description d (a = 'random(5)') system s (a = ['x', 'y'] and b contains (c = 1.) and soft 007 (d >= 1Ki)) deploy s 1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, _, err := radl.Parse(text, map[string]any{"a": 1, "b": "x"}); err == nil {
			roundTrip(t, d)
		}
	})
}
