// Package images keeps the systems that nodes of the namespace driver boot:
// directories with a root file system, made of tarballs or out of a
// distribution's packages.
package images

import (
	"bufio"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Store is a directory of images.
type Store struct {
	Dir string
	// Log gets what the programs say that make images. It may be nil.
	Log io.Writer
}

// Image is one image and what was found in it. What is not known is "".
type Image struct {
	Name         string
	Dir          string // absolute
	OS           string // "Linux"
	Distribution string // "Debian"
	Version      string // "12"
	Architecture string // "x86_64"
	Description  string // "Debian GNU/Linux 12 (bookworm)"
	SSHD         bool   // it serves logins itself
}

var (
	names    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	suites   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)
	packages = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{0,80}$`)
)

// beginning marks the directory of an image that is not whole.
const beginning = ".making-"

// defaultPackages are what users of nodes expect, beside the base system.
var defaultPackages = []string{"openssh-server", "sudo", "iproute2", "iputils-ping"}

// Import makes an image of a tarball of a root file system, of any compression
// that tar knows.
func (s Store) Import(ctx context.Context, name, tarball string) (*Image, error) {
	img, err := s.make(name, func(dir string) error {
		return s.unpack(ctx, tarball, dir)
	})
	if err != nil {
		return nil, fmt.Errorf("import image %s of %s: %w", name, tarball, err)
	}
	return img, nil
}

// unpack leaves devices out: nodes have their own, and get at no others.
func (s Store) unpack(ctx context.Context, tarball, dir string) error {
	if _, err := os.Stat(tarball); err != nil {
		return err
	}
	return s.run(ctx, "tar", "--extract", "--file", tarball, "--directory", dir, "--numeric-owner", "--same-owner",
		"--preserve-permissions", "--xattrs", "--xattrs-include=*", "--exclude=./dev/*", "--exclude=dev/*")
}

// Build makes an image out of the packages of a distribution, from where this
// machine has its own.
func (s Store) Build(ctx context.Context, name, suite string, include []string) (*Image, error) {
	img, err := s.build(ctx, name, suite, include)
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", name, err)
	}
	return img, nil
}

func (s Store) build(ctx context.Context, name, suite string, include []string) (*Image, error) {
	if !suites.MatchString(suite) {
		return nil, fmt.Errorf("suite %q: want the code name of a release, such as bookworm", suite)
	}
	for _, p := range include {
		if !packages.MatchString(p) {
			return nil, fmt.Errorf("package %q: want the name of a package", p)
		}
	}
	sources, err := machineSources()
	if err != nil {
		return nil, err
	}
	mirrors := mirrorsOf(sources, suite)
	if len(mirrors) == 0 {
		return nil, errors.New("this machine has no sources of packages to take them from (see /etc/apt/sources.list)")
	}
	all := slices.Concat(defaultPackages, include)
	if program, err := exec.LookPath("mmdebstrap"); err == nil {
		return s.make(name, func(dir string) error {
			tarball := dir + ".tar"
			defer os.Remove(tarball)
			args := []string{"--mode=root", "--variant=minbase", "--include=" + strings.Join(all, ","), suite, tarball}
			for _, m := range mirrors {
				args = append(args, m.line())
			}
			if err := s.run(ctx, program, args...); err != nil {
				return err
			}
			return s.unpack(ctx, tarball, dir)
		})
	}
	program, err := exec.LookPath("debootstrap")
	if err != nil {
		return nil, errors.New("neither mmdebstrap nor debootstrap is there (apt-get install mmdebstrap)")
	}
	return s.make(name, func(dir string) error {
		args := []string{"--variant=minbase", "--include=" + strings.Join(all, ",")}
		if mirrors[0].keyring != "" {
			args = append(args, "--keyring="+mirrors[0].keyring)
		}
		return s.run(ctx, program, append(args, suite, dir, mirrors[0].uri)...)
	})
}

// run runs a program and tells of its end what it said last.
func (s Store) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	last := &tail{to: s.Log}
	cmd.Stdout, cmd.Stderr = last, last
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), errors.Join(err, ctx.Err()), last.text())
	}
	return nil
}

// tail passes output on and keeps the end of it.
type tail struct {
	to   io.Writer
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const enough = 600
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-enough):]
	if t.to != nil {
		return t.to.Write(p)
	}
	return len(p), nil
}

func (t *tail) text() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "?") }

// make has an image made, in one step for everybody else.
func (s Store) make(name string, fill func(dir string) error) (*Image, error) {
	if !names.MatchString(name) {
		return nil, fmt.Errorf("name %q: want letters, digits, dots, hyphens and underscores, at most 63", name)
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("not running as root: the files of an image have owners")
	}
	to := filepath.Join(s.Dir, name)
	if _, err := os.Lstat(to); err == nil {
		return nil, fmt.Errorf("there is an image of that name at %s (nodes may run on it; choose another name)", to)
	}
	// Programs in images run as their owner: others must not get at them.
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.Dir, beginning)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	if err := fill(dir); err != nil {
		return nil, err
	}
	if err := check(dir); err != nil {
		return nil, err
	}
	if err := os.Rename(dir, to); err != nil {
		return nil, err
	}
	return s.look(name)
}

// check refuses what is no root file system.
func check(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, shell := range []string{"bin/sh", "usr/bin/sh", "bin/bash", "bin/busybox"} {
		if _, err := root.Lstat(shell); err == nil {
			return nil
		}
	}
	return errors.New("it is no root file system: there is no /bin/sh at its top (pack the files themselves, not a directory of them)")
}

// List lists the images, by name.
func (s Store) List() ([]*Image, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	var out []*Image
	for _, e := range entries {
		if !e.IsDir() || !names.MatchString(e.Name()) {
			continue
		}
		img, err := s.look(e.Name())
		if err != nil {
			return nil, fmt.Errorf("list images: %w", err)
		}
		out = append(out, img)
	}
	return out, nil
}

// look finds out what an image holds. It follows no link out of it.
func (s Store) look(name string) (*Image, error) {
	dir, err := filepath.Abs(filepath.Join(s.Dir, name))
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	img := &Image{Name: name, Dir: dir, OS: "Linux"}
	for _, file := range []string{"usr/lib/os-release", "etc/os-release"} {
		f, err := root.Open(file)
		if err != nil {
			continue
		}
		release := readRelease(io.LimitReader(f, 64<<10))
		f.Close()
		img.Distribution, img.Version, img.Description = title(release["ID"]), release["VERSION_ID"], release["PRETTY_NAME"]
		break
	}
	for _, file := range []string{"usr/bin/dash", "usr/bin/bash", "bin/bash", "bin/busybox", "usr/bin/busybox", "bin/sh", "usr/bin/sh"} {
		if img.Architecture = architectureOf(root, file); img.Architecture != "" {
			break
		}
	}
	st, err := root.Stat("usr/sbin/sshd")
	img.SSHD = err == nil && st.Mode().IsRegular()
	return img, nil
}

// readRelease reads os-release(5).
func readRelease(r io.Reader) map[string]string {
	out := map[string]string{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if !ok || strings.HasPrefix(key, "#") {
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		out[key] = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) && r != '"' && r != '\\' {
				return r
			}
			return -1
		}, value)
	}
	return out
}

func title(id string) string {
	if id == "" {
		return ""
	}
	return strings.ToUpper(id[:1]) + id[1:]
}

// architectureOf reads for which processors a program is.
func architectureOf(root *os.Root, file string) string {
	f, err := root.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	switch program.Machine {
	case elf.EM_X86_64:
		return "x86_64"
	case elf.EM_AARCH64:
		return "aarch64"
	case elf.EM_386:
		return "i686"
	case elf.EM_ARM:
		return "armv7l"
	case elf.EM_RISCV:
		return "riscv64"
	case elf.EM_PPC64:
		return "ppc64le"
	case elf.EM_S390:
		return "s390x"
	}
	return ""
}
