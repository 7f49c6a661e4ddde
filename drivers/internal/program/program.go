// Package program looks at the binary that becomes the init of nodes, whatever
// their images hold.
package program

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is the binary that becomes the init of nodes, with what it takes to
// load it in an image that may have another C library, or none.
type Program struct {
	File      *os.File
	Libraries []string // paths, the loader first; none for a static binary
}

// Open opens the binary now, so that nodes can be started also after
// it has been replaced by another version.
func Open(path string) (*Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the program of the nodes' init: %w", err)
	}
	p := &Program{File: f}
	st, err := f.Stat()
	if err == nil && st.Mode()&0o005 != 0o005 {
		err = fmt.Errorf("%s has mode %v: nodes run as nobody of the host and need it readable and executable by others (chmod o+rx)", path, st.Mode().Perm())
	}
	if err == nil {
		p.Libraries, err = libraries(f)
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
