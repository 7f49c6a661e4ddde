package csar

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"strings"
	"testing"
)

type file struct{ name, text string }

func zipped(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		w, err := z.Create(f.name)
		if err == nil {
			_, err = w.Write([]byte(f.text))
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

func tarred(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for _, f := range files {
		err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text)), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const service = "tosca_definitions_version: tosca_2_0\n"

func meta(lines ...string) string {
	return "CSAR-Version: 2.0\nCreated-By: somebody\n" + strings.Join(lines, "\n") + "\n"
}

func TestEntries(t *testing.T) {
	for name, c := range map[string]struct {
		files  []file
		entry  string // "": refused
		others string
		wrong  string
	}{
		"meta at the root":      {[]file{{"TOSCA.meta", meta("Entry-Definitions: a.yaml")}, {"a.yaml", service}, {"b.yaml", service}}, "a.yaml", "", ""},
		"meta in its folder":    {[]file{{"TOSCA-Metadata/TOSCA.meta", meta("Entry-Definitions: d/a.yaml")}, {"d/a.yaml", service}}, "d/a.yaml", "", ""},
		"other definitions":     {[]file{{"TOSCA.meta", meta("Entry-Definitions: a.yaml", `Other-Definitions: b.yaml "c d.yaml"`)}, {"a.yaml", service}, {"b.yaml", service}, {"c d.yaml", service}}, "a.yaml", "b.yaml|c d.yaml", ""},
		"a line that goes on":   {[]file{{"TOSCA.meta", meta("Entry-Definitions: a.yaml", "Other-Definitions: b.yaml", "  c.yaml")}, {"a.yaml", service}, {"b.yaml", service}, {"c.yaml", service}}, "a.yaml", "b.yaml|c.yaml", ""},
		"further blocks":        {[]file{{"TOSCA.meta", meta("Entry-Definitions: a.yaml", "", "Name: x", "Name: y")}, {"a.yaml", service}}, "a.yaml", "", ""},
		"one file at the root":  {[]file{{"a.yml", service}, {"more/b.yaml", service}, {"run.sh", "true"}}, "a.yml", "", ""},
		"both metas":            {[]file{{"TOSCA.meta", meta("Entry-Definitions: a.yaml")}, {"TOSCA-Metadata/TOSCA.meta", meta("Entry-Definitions: a.yaml")}, {"a.yaml", service}}, "", "", "want one"},
		"two files at the root": {[]file{{"a.yaml", service}, {"b.yaml", service}}, "", "", "2 YAML files"},
		"no file at the root":   {[]file{{"d/a.yaml", service}}, "", "", "neither a TOSCA.meta"},
		"no entry":              {[]file{{"TOSCA.meta", meta()}, {"a.yaml", service}}, "", "", "no Entry-Definitions"},
		"no version":            {[]file{{"TOSCA.meta", "Entry-Definitions: a.yaml\n"}, {"a.yaml", service}}, "", "", "no CSAR-Version"},
		"another version":       {[]file{{"TOSCA.meta", "CSAR-Version: 9.0\nEntry-Definitions: a.yaml\n"}, {"a.yaml", service}}, "", "", "9.0 is not read"},
		"an entry not in it":    {[]file{{"TOSCA.meta", meta("Entry-Definitions: b.yaml")}, {"a.yaml", service}}, "", "", "not in it"},
		"an entry outside":      {[]file{{"TOSCA.meta", meta("Entry-Definitions: ../a.yaml")}, {"a.yaml", service}}, "", "", "leads out"},
		"a line without name":   {[]file{{"TOSCA.meta", meta("nothing")}, {"a.yaml", service}}, "", "", "want name: value"},
		"a name twice":          {[]file{{"TOSCA.meta", meta("Entry-Definitions: a.yaml", "Entry-Definitions: b.yaml")}, {"a.yaml", service}}, "", "", "stands twice"},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, data := range map[string][]byte{"zip": zipped(t, c.files...), "tar.gz": tarred(t, c.files...)} {
				a, err := Open(data)
				if c.entry == "" {
					if err == nil || !strings.Contains(err.Error(), c.wrong) {
						t.Errorf("%s: opened with %v, want it refused: %q", kind, err, c.wrong)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", kind, err)
					continue
				}
				if a.Entry != c.entry || strings.Join(a.Others, "|") != c.others {
					t.Errorf("%s: entry %s, others %v", kind, a.Entry, a.Others)
				}
			}
		})
	}
}

func TestFiles(t *testing.T) {
	a, err := Open(zipped(t, file{"main.yaml", service}, file{"types/p.yaml", service + "profile: org.example:1\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Profile("org.example:1"); got != "types/p.yaml" {
		t.Errorf("profile found in %q", got)
	}
	if got := a.Profile("org.other"); got != "" {
		t.Errorf("profile found in %q", got)
	}
	for _, name := range []string{"../main.yaml", "..", "none.yaml", "/etc/passwd"} {
		if _, err := a.ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"a template":       {zipped(t, file{"a.yaml", service}), true},
		"a meta":           {zipped(t, file{"TOSCA.meta", ""}), true},
		"something else":   {zipped(t, file{"camp.yaml", "camp_version: 1.1\n"}), false},
		"a broken archive": {zipped(t, file{"a.yaml", service})[:40], true},
	} {
		if got := Detect(c.data); got != c.want {
			t.Errorf("%s: detected %v", name, got)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(zipped(f, file{"TOSCA.meta", meta("Entry-Definitions: a.yaml")}, file{"a.yaml", service}))
	f.Add(tarred(f, file{"a.yaml", service}))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Open(data)
		if (a == nil) == (err == nil) {
			t.Fatalf("both or none of an archive and an error: %v", err)
		}
		if err == nil {
			if _, err := a.ReadFile(a.Entry); err != nil {
				t.Fatalf("the entry %q is not in it: %v", a.Entry, err)
			}
		}
	})
}
