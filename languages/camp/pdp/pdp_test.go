package pdp_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"croft/languages/camp/pdp"
)

func zipOf(t *testing.T, files ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sum(name, text string) string {
	return fmt.Sprintf("SHA256(%s)= %x\n", name, sha256.Sum256([]byte(text)))
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name     string
		files    []string
		want     string // in the error; "" for none
		warnings int
	}{
		{"a plan alone", []string{"camp.yaml", "a: b"}, "", 0},
		{"a plan of csd02", []string{"app.dp", "a: b", "x/readme.dp", ""}, "", 0},
		{"a manifest", []string{"camp.yaml", "a: b", "camp.mf", sum("camp.yaml", "a: b")}, "", 0},
		{"a manifest with capitals", []string{"camp.yaml", "a: b", "camp.mf", strings.ToUpper(sum("x", "a: b"))}, "", 1},
		{"no plan", []string{"x/camp.yaml", "a: b"}, "no plan", 0},
		{"two plans", []string{"camp.yaml", "a: b", "app.dp", "a: b"}, "two files that are its plan", 0},
		{"two manifests", []string{"camp.yaml", "a: b", "a.mf", "", "b.mf", ""}, "two files that are its manifest", 0},
		{"a changed file", []string{"camp.yaml", "a: c", "camp.mf", sum("camp.yaml", "a: b")}, "camp.mf, line 1: the digest of camp.yaml", 0},
		{"a manifest of another kind", []string{"camp.yaml", "a: b", "camp.mf", "MD5(camp.yaml)= 00\n"}, "want SHA256", 0},
		{"a manifest of nonsense", []string{"camp.yaml", "a: b", "camp.mf", "\nwhat\n"}, "line 2", 0},
		{"a manifest that leads out", []string{"camp.yaml", "a: b", "camp.mf", sum("../x", "")}, "leads out", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := pdp.Open(zipOf(t, c.files...))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if err == nil && len(p.Warnings) != c.warnings {
				t.Errorf("warnings %q", p.Warnings)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	files := map[string]string{"a/run.sh": "true", "b": "", "old.mf": "gone"}
	for _, format := range []pdp.Format{pdp.Tar, pdp.Tgz, pdp.Zip} {
		var b bytes.Buffer
		err := pdp.Write(&b, format, []byte("plan: x"), []string{"a/run.sh", "b", "old.mf"}, func(n string) ([]byte, error) { return []byte(files[n]), nil })
		if err != nil {
			t.Fatal(err)
		}
		p, err := pdp.Open(b.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if got := strings.Join(p.Names(), " "); got != "a/run.sh b camp.mf camp.yaml" || string(p.Plan) != "plan: x" || len(p.Warnings) > 0 {
			t.Errorf("%s: files %s, plan %q, warnings %q", format, got, p.Plan, p.Warnings)
		}
	}
	if err := pdp.Write(&bytes.Buffer{}, "rar", nil, nil, nil); err == nil {
		t.Error("a format that nobody knows")
	}
}
