package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"croft/startup/archive"
)

// member is an entry of an archive that a test makes.
type member struct {
	kind         byte
	name, target string
	content      string
}

func file(name, content string) member    { return member{tar.TypeReg, name, "", content} }
func link(name, target string) member     { return member{tar.TypeSymlink, name, target, ""} }
func hardLink(name, target string) member { return member{tar.TypeLink, name, target, ""} }
func folder(name string) member           { return member{tar.TypeDir, name, "", ""} }

func makeTar(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Typeflag: m.kind, Name: m.name, Linkname: m.target, Mode: 0o4755, Size: int64(len(m.content)), Uid: 1234, Uname: "somebody"}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func makeZip(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		content := m.content
		switch m.kind {
		case tar.TypeSymlink:
			h.SetMode(0o777 | 1<<27) // fs.ModeSymlink
			content = m.target
		case tar.TypeDir:
			h.Name += "/"
			h.SetMode(0o755 | 1<<31)
		default:
			h.SetMode(0o755)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
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

// filter runs a program over data.
func filter(t testing.TB, data []byte, program string, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("needs %s: %v", program, err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// list writes what a tar holds, a line for each entry.
func list(t testing.TB, data []byte) string {
	t.Helper()
	var b strings.Builder
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%c %s %o %d:%d %s%s %s\n", h.Typeflag, h.Name, h.Mode, h.Uid, h.Gid, h.Linkname, h.Uname, content)
	}
}

func TestFormats(t *testing.T) {
	members := []member{folder("d"), file("./d/a", "text"), link("l", "/etc/passwd"), file("e", "")}
	plain := makeTar(t, members...)
	want := "5 d/ 755 7:8  \n0 d/a 755 7:8  text\n2 l 755 7:8 /etc/passwd \n0 e 755 7:8  \n"
	for _, c := range []struct {
		name string
		data func(t *testing.T) []byte
	}{
		{"tar", func(*testing.T) []byte { return plain }},
		{"tar.gz", func(t *testing.T) []byte { return zipped(t, plain) }},
		{"tar.bz2", func(t *testing.T) []byte { return filter(t, plain, "bzip2") }},
		{"tar.xz", func(t *testing.T) []byte { return filter(t, plain, "xz") }},
		{"zip", func(t *testing.T) []byte { return makeZip(t, members...) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := c.data(t)
			var out bytes.Buffer
			sum, err := archive.Convert(&out, bytes.NewReader(data), archive.Owner{UID: 7, GID: 8}, archive.Limits{}, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Replace(list(t, out.Bytes()), "2 l 777", "2 l 755", 1)
			if got != want {
				t.Errorf("it holds\n%swant\n%s", got, want)
			}
			if sum.Format != c.name || sum.Entries != 4 || sum.Size != 4 {
				t.Errorf("summary %+v", sum)
			}
		})
	}
}

func TestAttacks(t *testing.T) {
	zeros := make([]byte, 8<<20)
	limits := archive.Limits{Bytes: 1 << 20, Unpacked: 1 << 30, Entries: 100, Free: 4 << 20}
	many := make([]member, 101)
	for i := range many {
		many[i] = file(fmt.Sprint(i), "")
	}
	for _, c := range []struct {
		name string
		data []byte
		says string
	}{
		{"nothing", nil, "is empty"},
		{"text", []byte(strings.Repeat("hello ", 200)), "no format that is known"},
		{"short text", []byte("x"), "no format that is known"},
		{"a web page", []byte("<!DOCTYPE html>" + strings.Repeat(" ", 600)), "no format that is known"},
		{"dots", makeTar(t, file("a/../../b", "x")), "leads out"},
		{"dots in a zip", makeZip(t, file("../b", "x")), "leads out"},
		{"dots with backslashes in a zip", makeZip(t, file(`..\b`, "x")), "leads out"},
		{"absolute", makeTar(t, file("/etc/passwd", "x")), "no path below"},
		{"absolute in a zip", makeZip(t, file("/etc/passwd", "x")), "no path below"},
		{"through a link", makeTar(t, link("l", "/etc"), file("l/passwd", "x")), "leads through the link"},
		{"through a link in a zip", makeZip(t, link("l", "/etc"), file("l/passwd", "x")), "leads through the link"},
		{"a directory through a link", makeTar(t, link("l", "../.."), folder("l/x")), "leads through the link"},
		{"a link through a link", makeTar(t, link("l", "/etc"), link("./l/x", "y")), "leads through the link"},
		{"hard link to what is outside", makeTar(t, hardLink("h", "/etc/shadow")), "no path below"},
		{"hard link up", makeTar(t, hardLink("h", "../x")), "leads out"},
		{"hard link to what is not there", makeTar(t, hardLink("h", "x")), "no file before it"},
		{"hard link to a link", makeTar(t, link("l", "/etc/shadow"), hardLink("h", "l")), "no file before it"},
		{"device", makeTar(t, member{tar.TypeBlock, "sda", "", ""}), "neither a file"},
		{"fifo", makeTar(t, member{tar.TypeFifo, "f", "", ""}), "neither a file"},
		{"too many", makeTar(t, many...), "more than 100 entries"},
		{"too large", zipped(t, makeTar(t, file("a", string(zeros[:1<<20])))), ""}, // under all limits
		{"bomb", zipped(t, makeTar(t, file("a", string(zeros)))), "times its size"},
		{"bomb in a zip", makeZip(t, file("a", string(zeros))), "times its size"},
		{"bomb in a bomb", zipped(t, append(makeTar(t, file("a", "x"))[:1024], zeros...)), ""}, // nothing is read behind the end
		{"large archive", makeTar(t, file("a", string(zeros[:2<<20]))), "more than 1048576 bytes"},
		{"cut off", makeTar(t, file("a", string(zeros[:1<<16])))[:1<<15], "damaged"},
		{"broken gzip", append(zipped(t, makeTar(t, file("a", "x")))[:30], "xxxxxxxxxx"...), "damaged"},
		{"broken zip", []byte("PK\x03\x04" + strings.Repeat("x", 600)), "damaged"},
		{"gzip of no tar", zipped(t, []byte(strings.Repeat("x", 2000))), "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := archive.Convert(io.Discard, bytes.NewReader(c.data), archive.Owner{}, limits, t.TempDir())
			if c.says == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var refused *archive.Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want a refusal with %q", err, c.says)
			}
		})
	}
}

func TestUnpackedBound(t *testing.T) {
	data := makeTar(t, file("a", "12345"), file("b", "12345"))
	_, err := archive.Convert(io.Discard, bytes.NewReader(data), archive.Owner{}, archive.Limits{Unpacked: 9}, "")
	var refused *archive.Error
	if !errors.As(err, &refused) {
		t.Errorf("%v, want a refusal", err)
	}
}

// A connection that breaks is no fault of the archive's.
func TestBrokenReader(t *testing.T) {
	gone := errors.New("connection reset")
	data := zipped(t, makeTar(t, file("a", strings.Repeat("x", 1<<16))))
	for _, at := range []int{0, 5, len(data) / 2} {
		_, err := archive.Convert(io.Discard, io.MultiReader(bytes.NewReader(data[:at]), failing{gone}), archive.Owner{}, archive.Limits{}, "")
		if !errors.Is(err, gone) {
			t.Errorf("after %d bytes: %v, want the reader's own error", at, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Whatever comes in, what goes out is a tar with nothing outside.
func FuzzConvert(f *testing.F) {
	plain := makeTar(f, folder("d"), file("d/a", "text"), link("l", "d/a"), hardLink("h", "d/a"))
	f.Add(plain)
	f.Add(zipped(f, plain))
	f.Add(makeZip(f, folder("d"), file("d/a", "text"), link("l", "d/a")))
	f.Add(makeTar(f, file("../x", "")))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		limits := archive.Limits{Bytes: 1 << 20, Unpacked: 1 << 20, Entries: 1000}
		if _, err := archive.Convert(&out, bytes.NewReader(data), archive.Owner{}, limits, dir); err != nil {
			return
		}
		r := tar.NewReader(&out)
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatalf("what comes out is no tar: %v", err)
			}
			for _, part := range strings.Split(h.Name, "/") {
				if part == ".." || strings.HasPrefix(h.Name, "/") {
					t.Fatalf("%q leads out", h.Name)
				}
			}
		}
	})
}
