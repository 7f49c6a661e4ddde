package csar

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// What is read of an archive at most.
const (
	MaxEntries = 10_000
	MaxFile    = 32 << 20  // bytes of a file
	MaxTotal   = 128 << 20 // bytes of all files, unpacked
	MaxRatio   = 200       // bytes unpacked for each packed one, beyond the first MiB
)

// Archive is a Cloud Service Archive that was unpacked.
type Archive struct {
	Entry  string   // Entry-Definitions
	Others []string // Other-Definitions
	Meta   map[string]string

	files    map[string][]byte
	profiles map[string]string
}

// Open unpacks an archive.
func Open(data []byte) (*Archive, error) {
	a := &Archive{files: map[string][]byte{}, profiles: map[string]string{}}
	var err error
	if isGzip(data) || isTar(data) {
		err = a.untar(data)
	} else {
		err = a.unzip(data)
	}
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	if err := a.entries(); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	for _, name := range a.Names() {
		if isYAML(name) {
			note(a.profiles, name, a.files[name])
		}
	}
	return a, nil
}

// ReadFile returns a file of the archive.
func (a *Archive) ReadFile(name string) ([]byte, error) {
	if name == ".." || strings.HasPrefix(name, "../") {
		return nil, fmt.Errorf("%s leads out of the archive: %w", name, fs.ErrNotExist)
	}
	data, ok := a.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

// Profile names the file of the archive that defines a profile, or "".
func (a *Archive) Profile(profile string) string { return a.profiles[profile] }

// Names lists the files, sorted.
func (a *Archive) Names() []string {
	names := make([]string, 0, len(a.files))
	for name := range a.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// add takes a file, after checking its name and how much there is by now.
func (a *Archive) add(name string, r io.Reader, budget *int64) error {
	clean, err := cleanName(name)
	if err != nil {
		return err
	}
	if _, twice := a.files[clean]; twice {
		return fmt.Errorf("%s is in it twice", clean)
	}
	limit := min(int64(MaxFile), *budget)
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("%s: %w", clean, err)
	}
	if int64(len(data)) > limit {
		return fmt.Errorf("%s: more than is unpacked: at most %d bytes a file, %d in all, and %d for each packed byte", clean, MaxFile, MaxTotal, MaxRatio)
	}
	*budget -= int64(len(data))
	a.files[clean] = data
	return nil
}

// cleanName refuses names that lead out of the archive, or that machines read
// differently.
func cleanName(name string) (string, error) {
	if name == "" || strings.ContainsAny(name, "\x00\\") || strings.HasPrefix(name, "/") || len(name) > 1000 || strings.Contains(path.Base(name), ":") {
		return "", fmt.Errorf("%q is no name of a file in an archive", name)
	}
	clean := path.Clean(name)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("%q leads out of the archive", name)
	}
	return clean, nil
}

func budgetFor(packed int) int64 {
	return min(int64(MaxTotal), 1<<20+int64(packed)*MaxRatio)
}

func (a *Archive) unzip(data []byte) error {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	if len(z.File) > MaxEntries {
		return fmt.Errorf("%d entries: at most %d are read", len(z.File), MaxEntries)
	}
	budget := budgetFor(len(data))
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			if _, err := cleanName(strings.TrimSuffix(f.Name, "/")); err != nil {
				return err
			}
			continue
		}
		if f.Flags&1 != 0 {
			return fmt.Errorf("%s is encrypted", f.Name)
		}
		if !f.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", f.Name)
		}
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		err = a.add(f.Name, r, &budget)
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Archive) untar(data []byte) error {
	budget := budgetFor(len(data))
	var r io.Reader = bytes.NewReader(data)
	if isGzip(data) {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		// Headers and padding count as well.
		r = io.LimitReader(unpacked, budget+MaxEntries*1024)
	}
	t := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n >= MaxEntries {
			return fmt.Errorf("more than %d entries", MaxEntries)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			if name := strings.TrimSuffix(h.Name, "/"); name != "" && name != "." {
				if _, err := cleanName(name); err != nil {
					return err
				}
			}
		case tar.TypeReg:
			if err := a.add(h.Name, t, &budget); err != nil {
				return err
			}
		case tar.TypeXGlobalHeader:
		default:
			return fmt.Errorf("%s is no regular file", h.Name)
		}
	}
}

// entries finds the file to begin with.
func (a *Archive) entries() error {
	const inFolder, atRoot = "TOSCA-Metadata/TOSCA.meta", "TOSCA.meta"
	meta, name := a.files[inFolder], inFolder
	if root, ok := a.files[atRoot]; ok {
		if meta != nil {
			return fmt.Errorf("both %s and %s are in it: want one", atRoot, inFolder)
		}
		meta, name = root, atRoot
	}
	if meta != nil {
		return a.readMeta(name, meta)
	}
	var roots []string
	for file := range a.files {
		if !strings.Contains(file, "/") && isYAML(file) {
			roots = append(roots, file)
		}
	}
	switch len(roots) {
	case 0:
		return errNoEntry
	case 1:
		a.Entry = roots[0]
		return nil
	}
	slices.Sort(roots)
	return fmt.Errorf("it has no TOSCA.meta, and %d YAML files at its root: %s", len(roots), strings.Join(roots, ", "))
}

// readMeta reads block 0 of a TOSCA.meta (csd05, 7.2).
func (a *Archive) readMeta(name string, data []byte) error {
	a.Meta = map[string]string{}
	key := ""
	for i, line := range strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n") {
		if strings.TrimSpace(line) == "" {
			if len(a.Meta) > 0 {
				break
			}
			continue
		}
		if line[0] == ' ' && key != "" {
			a.Meta[key] += " " + strings.TrimSpace(line)
			continue
		}
		k, v, ok := strings.Cut(line, ":")
		if key = strings.TrimSpace(k); !ok || key == "" {
			return fmt.Errorf("%s, line %d: want name: value", name, i+1)
		}
		if _, twice := a.Meta[key]; twice {
			return fmt.Errorf("%s, line %d: %s stands twice", name, i+1, key)
		}
		a.Meta[key] = strings.TrimSpace(v)
	}
	version, ok := a.Meta["CSAR-Version"]
	if !ok {
		return fmt.Errorf("%s has no CSAR-Version", name)
	}
	if version != "2.0" && version != "1.1" && version != "1.0" {
		return fmt.Errorf("%s: CSAR-Version %s is not read: want 2.0, or 1.1 or 1.0 of TOSCA 1.x", name, version)
	}
	entry := a.Meta["Entry-Definitions"]
	if entry == "" {
		return fmt.Errorf("%s has no Entry-Definitions", name)
	}
	var err error
	if a.Entry, err = a.named(name, strings.Trim(entry, `"`)); err != nil {
		return err
	}
	for _, other := range fields(a.Meta["Other-Definitions"]) {
		file, err := a.named(name, other)
		if err != nil {
			return err
		}
		a.Others = append(a.Others, file)
	}
	return nil
}

func (a *Archive) named(meta, file string) (string, error) {
	clean, err := cleanName(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", meta, err)
	}
	if _, ok := a.files[clean]; !ok {
		return "", fmt.Errorf("%s names %s, which is not in it", meta, file)
	}
	return clean, nil
}

// fields splits a list of names by blanks; names with blanks are quoted.
func fields(s string) []string {
	var list []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] == '"' {
			if name, rest, ok := strings.Cut(s[1:], `"`); ok {
				list, s = append(list, name), rest
				continue
			}
		}
		name, rest, _ := strings.Cut(s, " ")
		list, s = append(list, name), rest
	}
	return list
}
