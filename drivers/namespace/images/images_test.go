package images

import (
	"archive/tar"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is the head of a program for a processor.
func program(machine elf.Machine) string {
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(b[16:], uint16(elf.ET_EXEC))
	binary.LittleEndian.PutUint16(b[18:], uint16(machine))
	binary.LittleEndian.PutUint32(b[20:], 1)
	binary.LittleEndian.PutUint16(b[52:], 64)
	return string(b)
}

type file struct {
	name, text string
	mode       int64
	kind       byte
	owner      int
}

func pack(t *testing.T, files ...file) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "image.tar")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for _, e := range files {
		h := &tar.Header{Name: e.name, Mode: e.mode, Typeflag: e.kind, Uid: e.owner, Gid: e.owner, ModTime: time.Unix(0, 0)}
		if e.kind == tar.TypeReg {
			h.Size = int64(len(e.text))
		} else {
			h.Linkname = e.text
		}
		err := w.WriteHeader(h)
		if err == nil && e.kind == tar.TypeReg {
			_, err = io.WriteString(w, e.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: the files of images have owners, which needs root (sudo go test …)")
	}
}

func TestImport(t *testing.T) {
	needRoot(t)
	s := Store{Dir: filepath.Join(t.TempDir(), "images")}
	ctx := t.Context()
	good := pack(t,
		file{name: "./usr/bin/dash", text: program(elf.EM_AARCH64), mode: 0o755, kind: tar.TypeReg},
		file{name: "./bin", text: "usr/bin", kind: tar.TypeSymlink},
		file{name: "./usr/bin/sh", text: "dash", kind: tar.TypeSymlink},
		file{name: "./usr/bin/su", text: "x", mode: 0o4755, kind: tar.TypeReg},
		file{name: "./usr/sbin/sshd", text: "x", mode: 0o755, kind: tar.TypeReg},
		file{name: "./etc/os-release", text: "# it\nID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME='Debian 12'\n", mode: 0o644, kind: tar.TypeReg},
		file{name: "./var/mine", text: "x", mode: 0o640, kind: tar.TypeReg, owner: 1234},
		file{name: "./dev/sda", mode: 0o600, kind: tar.TypeBlock},
	)
	img, err := s.Import(ctx, "debian12", good)
	if err != nil {
		t.Fatal(err)
	}
	want := Image{Name: "debian12", Dir: filepath.Join(s.Dir, "debian12"), OS: "Linux", Distribution: "Debian", Version: "12",
		Architecture: "aarch64", Description: "Debian 12", SSHD: true}
	if *img != want {
		t.Errorf("got %+v, want %+v", *img, want)
	}
	if st, err := os.Stat(filepath.Join(img.Dir, "usr/bin/su")); err != nil || st.Mode()&os.ModeSetuid == 0 {
		t.Errorf("su: %v, %v", st, err)
	}
	if out, err := exec.Command("stat", "-c", "%u:%g", filepath.Join(img.Dir, "var/mine")).Output(); err != nil || strings.TrimSpace(string(out)) != "1234:1234" {
		t.Errorf("owner %s, %v", out, err)
	}
	if _, err := os.Lstat(filepath.Join(img.Dir, "dev/sda")); err == nil {
		t.Error("the image has a device")
	}
	outside := filepath.Join(t.TempDir(), "outside")
	for _, test := range []struct {
		name, image, tarball, want string
	}{
		{"a name that is taken", "debian12", good, "there is an image of that name"},
		{"a name with a path", "../x", good, "want letters"},
		{"no tarball", "x", filepath.Join(t.TempDir(), "none"), "no such file"},
		{"no system", "x", pack(t, file{name: "top/bin/sh", text: "x", mode: 0o755, kind: tar.TypeReg}), "no root file system"},
		{"not a tarball", "x", filepath.Join(img.Dir, "etc/os-release"), "tar"},
		{"files beside the image", "x", pack(t, file{name: "../../../../../../../.." + outside, text: "x", mode: 0o644, kind: tar.TypeReg}), "tar"},
		{"files through a link", "x", pack(t, file{name: "d", text: filepath.Dir(outside), kind: tar.TypeSymlink},
			file{name: "d/outside", text: "x", mode: 0o644, kind: tar.TypeReg}), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := s.Import(ctx, test.image, test.tarball)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("a file was written outside of the image")
			}
		})
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || *list[0] != want {
		t.Errorf("list: %v, %v", list, err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, ".*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestBuildRefuses(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	for _, test := range []struct{ name, suite, include, want string }{
		{"x", "--help", "", "suite"}, {"x", "bookworm", "--option", "package"}, {"x", "Bookworm", "", "suite"},
	} {
		if _, err := s.Build(t.Context(), test.name, test.suite, strings.Fields(test.include)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q of %q with %q: %v", test.name, test.suite, test.include, err)
		}
	}
}

// TestBuild makes a real one.
func TestBuild(t *testing.T) {
	needRoot(t)
	if os.Getenv("CROFT_SOAK") == "" {
		t.Skip("SKIPPED: building an image takes minutes and a network (CROFT_SOAK=1)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	img, err := Store{Dir: t.TempDir()}.Build(ctx, "debian", "bookworm", nil)
	if err != nil {
		t.Fatal(err)
	}
	if img.Distribution != "Debian" || img.Version != "12" || img.Architecture == "" || !img.SSHD {
		t.Errorf("got %+v", *img)
	}
}

func TestSources(t *testing.T) {
	lines := readLines(strings.NewReader(`# a comment
deb http://a.example/debian bookworm main contrib # the system
deb [arch=amd64 signed-by=/k.gpg] http://a.example/debian bookworm-updates main
deb-src http://a.example/debian bookworm main
deb [ http://broken
deb http://short x
`))
	stanzas := readStanzas(strings.NewReader(`Types: deb
# why
URIs: http://b.example/debian http://c.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/x.gpg

Types: deb-src
URIs: http://b.example/debian
Suites: bookworm
Components: main

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://inline.example
Suites: other
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 xyz
`))
	for _, test := range []struct {
		name, suite string
		sources     []source
		want        []string
	}{
		{"lines", "bookworm", lines, []string{
			"deb http://a.example/debian bookworm main contrib", "deb [signed-by=/k.gpg] http://a.example/debian bookworm-updates main"}},
		{"stanzas", "bookworm", stanzas, []string{
			"deb [signed-by=/usr/share/keyrings/x.gpg] http://b.example/debian bookworm main",
			"deb [signed-by=/usr/share/keyrings/x.gpg] http://c.example/debian bookworm main",
			"deb [signed-by=/usr/share/keyrings/x.gpg] http://b.example/debian bookworm-updates main",
			"deb [signed-by=/usr/share/keyrings/x.gpg] http://c.example/debian bookworm-updates main"}},
		{"another release", "trixie", append(readLines(strings.NewReader("deb http://third.example stable main\n")), stanzas...),
			[]string{"deb [signed-by=/usr/share/keyrings/x.gpg] http://b.example/debian trixie main"}},
		{"only one archive", "trixie", lines[:1], []string{"deb http://a.example/debian trixie main"}},
		{"none", "trixie", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, s := range mirrorsOf(test.sources, test.suite) {
				got = append(got, s.line())
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func FuzzSources(f *testing.F) {
	f.Add("deb [signed-by=/k] http://a b main\n\nTypes: deb\nURIs: x\nSuites: y\n z\nComponents: main")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range append(readLines(strings.NewReader(text)), readStanzas(strings.NewReader(text))...) {
			if s.uri == "" || s.suite == "" || len(s.components) == 0 {
				t.Errorf("half a source: %+v", s)
			}
		}
	})
}

func FuzzRelease(f *testing.F) {
	f.Add("ID=debian\nPRETTY_NAME=\"Debian \\\"x\\\"\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		for k, v := range readRelease(strings.NewReader(text)) {
			if strings.ContainsAny(v, "\n\"\\") {
				t.Errorf("%q is %q", k, v)
			}
		}
	})
}
