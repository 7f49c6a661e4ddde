package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	"croft/languages/archive"
)

type entry struct {
	name, content string
	kind          byte // of a tar
}

func zipOf(t testing.TB, entries ...entry) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		w, err := z.Create(e.name)
		if err == nil {
			_, err = w.Write([]byte(e.content))
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

func tarOf(t testing.TB, entries ...entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Typeflag: e.kind, Format: tar.FormatUSTAR}
		if e.kind == tar.TypeReg {
			h.Size = int64(len(e.content))
		} else {
			h.Linkname = e.content
		}
		err := w.WriteHeader(h)
		if err == nil && e.kind == tar.TypeReg {
			_, err = w.Write([]byte(e.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t testing.TB, data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOpen(t *testing.T) {
	files := []entry{{"plan.yaml", "a: b", tar.TypeReg}, {"./scripts/run.sh", "true", tar.TypeReg}}
	for name, data := range map[string][]byte{
		"zip": zipOf(t, files...), "tar": tarOf(t, files...), "tar.gz": gzipOf(t, tarOf(t, files...)),
	} {
		t.Run(name, func(t *testing.T) {
			if !archive.Is(data) {
				t.Error("not recognized")
			}
			a, err := archive.Open(data)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Names(); !slices.Equal(got, []string{"plan.yaml", "scripts/run.sh"}) {
				t.Errorf("files %q", got)
			}
			if text, err := a.ReadFile("scripts/run.sh"); err != nil || string(text) != "true" {
				t.Errorf("%q, %v", text, err)
			}
			if _, err := a.ReadFile("../etc/passwd"); err == nil {
				t.Error("a file outside was read")
			}
		})
	}
}

func TestAttacks(t *testing.T) {
	many := make([]entry, archive.MaxEntries+1)
	for i := range many {
		many[i] = entry{strings.Repeat("x", i%50+1) + string(rune('a'+i%26)), "", tar.TypeReg}
	}
	zeros := strings.Repeat("\x00", 30<<20)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"up in a zip", zipOf(t, entry{"../x", "", 0}), "leads out"},
		{"up in a tar", tarOf(t, entry{"a/../../x", "", tar.TypeReg}), "leads out"},
		{"from the root", tarOf(t, entry{"/etc/passwd", "", tar.TypeReg}), "no name"},
		{"a drive", zipOf(t, entry{"c:x", "", 0}), "no name"},
		{"a backslash", zipOf(t, entry{`a\..\x`, "", 0}), "no name"},
		{"a symbolic link", tarOf(t, entry{"a", "/etc", tar.TypeSymlink}), "no regular file"},
		{"a hard link", tarOf(t, entry{"a", "b", tar.TypeLink}), "no regular file"},
		{"a device", tarOf(t, entry{"a", "", tar.TypeChar}), "no regular file"},
		{"twice", zipOf(t, entry{"a", "1", 0}, entry{"./a", "2", 0}), "twice"},
		{"too many", tarOf(t, many...), ""},
		{"a bomb in a zip", zipOf(t, entry{"a", zeros, 0}), "more than is unpacked"},
		{"a bomb in a tar.gz", gzipOf(t, tarOf(t, entry{"a", zeros, tar.TypeReg})), ""},
		{"cut off", tarOf(t, entry{"a", strings.Repeat("x", 4000), tar.TypeReg})[:2000], ""},
		{"neither", []byte("PK\x03\x04 and nothing else"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := archive.Open(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzOpen(f *testing.F) {
	files := []entry{{"plan.yaml", "a: b", tar.TypeReg}, {"scripts/run.sh", "true", tar.TypeReg}}
	f.Add(zipOf(f, files...))
	f.Add(tarOf(f, files...))
	f.Add(gzipOf(f, tarOf(f, files...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := archive.Open(data)
		if err != nil {
			return
		}
		for _, name := range a.Names() {
			if clean, err := archive.CleanName(name); err != nil || clean != name {
				t.Errorf("name %q: %q, %v", name, clean, err)
			}
		}
	})
}
