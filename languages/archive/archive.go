// Package archive reads the archives that documents come in: zip, and tar with
// or without gzip. All is kept in memory, its size is bounded before it is
// unpacked, and nothing but regular files is read.
package archive

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

// Archive is the files of an archive.
type Archive struct{ files map[string][]byte }

// Open unpacks an archive. Its errors say which file is wrong, and how.
func Open(data []byte) (*Archive, error) {
	a := &Archive{files: map[string][]byte{}}
	read := a.unzip
	if isGzip(data) || isTar(data) {
		read = a.untar
	}
	if err := read(data); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return a, nil
}

// Is reports whether the bytes are those of a zip or tar archive, compressed or
// not.
func Is(data []byte) bool {
	return bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06")) || isGzip(data) || isTar(data)
}

func isGzip(data []byte) bool { return bytes.HasPrefix(data, []byte("\x1f\x8b")) }

func isTar(data []byte) bool { return len(data) > 262 && string(data[257:262]) == "ustar" }

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
	clean, err := CleanName(name)
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

// CleanName makes the name of a file in an archive as short as it can be. It
// refuses names that lead out of the archive, or that machines read
// differently.
func CleanName(name string) (string, error) {
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
			if _, err := CleanName(strings.TrimSuffix(f.Name, "/")); err != nil {
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
				if _, err := CleanName(name); err != nil {
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
