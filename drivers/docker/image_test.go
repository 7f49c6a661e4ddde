package docker_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The images of the tests, made of what this machine has.
const (
	fullImage  = "croft-test/full:1"  // sudo, OpenSSH, accounts: a small Debian
	smallImage = "croft-test/small:1" // busybox
)

func writeImage(w io.Writer, name string) error {
	a := archive{out: tar.NewWriter(w), done: map[string]bool{}}
	var err error
	switch name {
	case fullImage:
		err = a.debian()
	case smallImage:
		err = a.busybox()
	default:
		err = fmt.Errorf("no such image")
	}
	if err != nil {
		return err
	}
	return a.out.Close()
}

// archive is the file system of an image.
type archive struct {
	out  *tar.Writer
	done map[string]bool
}

func (a *archive) file(name, content string, mode int64) error {
	if err := a.dir(path.Dir(name), 0o755); err != nil {
		return err
	}
	if a.done[name] {
		return nil
	}
	a.done[name] = true
	if err := a.out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name[1:], Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := io.WriteString(a.out, content)
	return err
}

func (a *archive) dir(name string, mode int64) error {
	if name == "/" || a.done[name] {
		return nil
	}
	if err := a.dir(path.Dir(name), 0o755); err != nil {
		return err
	}
	a.done[name] = true
	return a.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: mode})
}

func (a *archive) link(name, to string) error {
	if err := a.dir(path.Dir(name), 0o755); err != nil || a.done[name] {
		return err
	}
	a.done[name] = true
	return a.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name[1:], Linkname: to, Mode: 0o777})
}

// host takes a file of this machine's, under the name that it really has.
func (a *archive) host(name string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return nil // left out of this machine's installation
	}
	at := filepath.Join(dir, filepath.Base(name))
	st, err := os.Lstat(at)
	if err != nil {
		return nil
	}
	switch {
	case st.IsDir():
		return a.dir(at, int64(st.Mode().Perm()))
	case st.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(at)
		if err != nil {
			return err
		}
		return a.link(at, to)
	case st.Mode().IsRegular():
		data, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		mode := int64(st.Mode().Perm())
		if st.Mode()&fs.ModeSetuid != 0 {
			mode |= 0o4000
		}
		return a.file(at, string(data), mode)
	}
	return nil
}

// base are the files that no package brings.
func (a *archive) base() error {
	for name, mode := range map[string]int64{
		"/dev": 0o755, "/home": 0o755, "/proc": 0o755, "/root": 0o700, "/run": 0o755, "/sys": 0o755, "/tmp": 0o1777,
		"/var/tmp": 0o1777, "/var/lib": 0o755, "/var/log": 0o755,
	} {
		if err := a.dir(name, mode); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name, content string
		mode          int64
	}{
		{"/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nservice:x:999:999::/:/bin/false\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n", 0o644},
		{"/etc/group", "root:x:0:\nshadow:x:42:\nservice:x:999:\nnogroup:x:65534:\n", 0o644},
		{"/etc/shadow", "root:*:19000:0:99999:7:::\n", 0o640},
		{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n", 0o644},
	} {
		if err := a.file(f.name, f.content, f.mode); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) busybox() error {
	program, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	binary, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%s is not a static busybox: %w (apt-get install busybox-static)", program, exec.ErrNotFound)
	}
	if err := a.base(); err != nil {
		return err
	}
	if err := a.file("/bin/busybox", string(data), 0o755); err != nil {
		return err
	}
	applets, err := exec.Command(program, "--list").Output()
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(applets)) {
		if err := a.link("/bin/"+name, "busybox"); err != nil {
			return err
		}
	}
	return nil
}

// packages are what users of the full image find; what they need comes, too.
var packages = []string{
	"base-files", "bash", "coreutils", "dash", "findutils", "grep", "hostname", "iproute2", "iputils-ping", "libpam-modules",
	"libpam-runtime", "login", "mawk", "openssh-client", "openssh-server", "openssh-sftp-server", "passwd", "procps", "sed", "sudo", "util-linux",
}

func (a *archive) debian() error {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return err
	}
	for _, top := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if to, err := os.Readlink(top); err == nil {
			if err := a.link(top, to); err != nil {
				return err
			}
		}
	}
	if err := a.base(); err != nil {
		return err
	}
	all, err := withDependencies(packages)
	if err != nil {
		return err
	}
	list, err := exec.Command("dpkg-query", append([]string{"--listfiles"}, all...)...).Output()
	if err != nil {
		return fmt.Errorf("list the files of packages: %w", err)
	}
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		if !strings.HasPrefix(name, "/") || name == "/." || strings.HasPrefix(name, "/usr/share/") && !strings.HasPrefix(name, "/usr/share/pam") {
			continue
		}
		if err := a.host(name); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/etc/pam.d", "/etc/security", "/etc/ld.so.conf.d"} {
		files, err := filepath.Glob(dir + "/*")
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := a.host(f); err != nil {
				return err
			}
		}
	}
	for _, f := range []string{"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/login.defs"} {
		if err := a.host(f); err != nil {
			return err
		}
	}
	return a.link("/usr/bin/awk", "mawk")
}

// withDependencies adds what packages depend on, as far as it is installed.
func withDependencies(names []string) ([]string, error) {
	out, err := exec.Command("dpkg-query", "--show", "--showformat", "${binary:Package}\t${db:Status-Abbrev}\t${Pre-Depends}, ${Depends}\n").Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	needs := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(f) != 3 || !strings.HasPrefix(f[1], "ii") {
			continue
		}
		name, _, _ := strings.Cut(f[0], ":")
		needs[name] = strings.FieldsFunc(f[2], func(r rune) bool { return r == ',' || r == '|' })
	}
	var all []string
	for todo := slices.Clone(names); len(todo) > 0; {
		name, _, _ := strings.Cut(strings.TrimSpace(todo[0]), " ")
		name, _, _ = strings.Cut(name, ":")
		todo = todo[1:]
		list, installed := needs[name]
		if !installed && slices.Contains(names, name) {
			return nil, fmt.Errorf("package %s: %w", name, exec.ErrNotFound)
		}
		if installed && !slices.Contains(all, name) {
			all = append(all, name)
			todo = append(todo, list...)
		}
	}
	return all, nil
}
