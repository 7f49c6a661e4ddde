package namespace

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// layer opens a directory as a layer of a node: a mount of its own, read only,
// whose owners are those of the node's user namespace. Mounts below the
// directory are not part of it.
func layer(dir string, userns int) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open layer %s: %w", dir, err)
	}
	attr := unix.MountAttr{
		Attr_set:  unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV,
		Userns_fd: uint64(userns),
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
			return -1, fmt.Errorf("map the owners of %s: %w (its file system or the kernel has no idmapped mounts; ext4, xfs and btrfs have them from Linux 5.15 on)", dir, err)
		}
		return -1, fmt.Errorf("map the owners of %s: %w", dir, err)
	}
	return fd, nil
}

// place opens a directory or file of the host's to be mounted in a node as it
// is.
func place(path string) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	return fd, nil
}

// program is the binary that becomes the init of nodes, with what it takes to
// load it in an image that may have another C library, or none.
type program struct {
	file      *os.File
	libraries []string // paths, the loader first; none for a static binary
}

// openProgram opens the binary now, so that nodes can be started also after
// it has been replaced by another version.
func openProgram(path string) (*program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the program of the nodes' init: %w", err)
	}
	p := &program{file: f}
	st, err := f.Stat()
	if err == nil && st.Mode()&0o005 != 0o005 {
		err = fmt.Errorf("%s has mode %v: nodes run as nobody of the host and need it readable and executable by others (chmod o+rx)", path, st.Mode().Perm())
	}
	if err == nil {
		p.libraries, err = libraries(f)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open the program of the nodes' init: %w", err)
	}
	return p, nil
}

// libraries asks the binary's own loader what it would load.
func libraries(f *os.File) ([]string, error) {
	bin, err := elf.NewFile(f)
	if err != nil {
		return nil, err
	}
	loader := ""
	for _, p := range bin.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, p.Filesz)
		if _, err := p.ReadAt(name, 0); err != nil {
			return nil, err
		}
		loader = string(bytes.TrimRight(name, "\x00"))
	}
	if loader == "" {
		return nil, nil
	}
	path, err := os.Readlink("/proc/self/fd/" + fmt.Sprint(f.Fd()))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(loader, "--list", path)
	cmd.Env = []string{"LANG=C"}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the libraries of %s: %w", path, err)
	}
	libs := []string{loader}
	for line := range strings.Lines(string(out)) {
		// "libc.so.6 => /lib/…/libc.so.6 (0x…)"; the loader and the kernel's
		// own library have no arrow.
		name, to, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok {
			continue
		}
		file, _, _ := strings.Cut(to, " (")
		if !filepath.IsAbs(file) {
			return nil, fmt.Errorf("%s needs library %s: %s", path, name, to)
		}
		if filepath.Base(file) != filepath.Base(loader) {
			libs = append(libs, file)
		}
	}
	return libs, nil
}

// open opens the binary and its libraries to be mounted in a node.
func (p *program) open() (binary int, libs []int, err error) {
	binary, err = place(fmt.Sprintf("/proc/self/fd/%d", p.file.Fd()))
	if err != nil {
		return -1, nil, err
	}
	for _, l := range p.libraries {
		fd, err := place(l)
		if err != nil {
			closeFDs(append(libs, binary))
			return -1, nil, err
		}
		libs = append(libs, fd)
	}
	return binary, libs, nil
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
