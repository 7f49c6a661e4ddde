// Package csar gives TOSCA files to read: those of an archive (csd05, chapter
// 7), of a folder, or a single one. Nothing outside of an archive is read, and
// its size is bounded before it is unpacked.
package csar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"croft/languages/archive"
)

// Folder is a TOSCA file of the machine with what lies around it. It is for
// commands that a user runs on their own files: paths may lead up.
type Folder struct {
	Dir string // of the file that is read first

	profiles map[string]string
}

// ReadFile reads a file by its path from the folder.
func (f *Folder) ReadFile(name string) ([]byte, error) {
	return readFile(filepath.Join(f.Dir, filepath.FromSlash(name)))
}

// Relative is the name of a file with an absolute path.
func (f *Folder) Relative(name string) (string, bool) {
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return "", false
	}
	relative, err := filepath.Rel(dir, filepath.FromSlash(name))
	return filepath.ToSlash(relative), err == nil
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: %w", name, fs.ErrNotExist)
	}
	if info.Size() > archive.MaxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", name, archive.MaxFile)
	}
	return os.ReadFile(name)
}

// Profile finds a profile among the files of the folder.
func (f *Folder) Profile(profile string) string {
	if f.profiles == nil {
		f.profiles = map[string]string{}
		entries, err := os.ReadDir(f.Dir)
		if err != nil || len(entries) > 2000 {
			return ""
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !isYAML(e.Name()) {
				continue
			}
			if data, err := f.ReadFile(e.Name()); err == nil {
				note(f.profiles, e.Name(), data)
			}
		}
	}
	return f.profiles[profile]
}

func isYAML(name string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(path.Ext(name)))
}

var profileLine = regexp.MustCompile(`(?m)^profile:[ \t]+["']?([^"'#\s]+)`)

// note remembers the profile that a file defines, if it does.
func note(profiles map[string]string, name string, data []byte) {
	if m := profileLine.FindSubmatch(data); m != nil && profiles[string(m[1])] == "" {
		profiles[string(m[1])] = name
	}
}

// Single is a TOSCA file alone.
type Single struct {
	Name string
	Data []byte
}

// ReadFile returns the file, and no other.
func (s Single) ReadFile(name string) ([]byte, error) {
	if name != s.Name {
		return nil, fs.ErrNotExist
	}
	return s.Data, nil
}

// Profile returns "": a file alone has none beside it.
func (Single) Profile(string) string { return "" }

var errNoEntry = errors.New("the archive has neither a TOSCA.meta nor one YAML file at its root")
