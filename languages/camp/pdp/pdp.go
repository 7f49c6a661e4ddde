// Package pdp reads and writes Platform Deployment Packages (CAMP 1.1 csd02,
// "Platform Deployment Package"): a plan with the files that it names, in a
// tar, a tar.gz or a zip. The plan is camp.yaml, as the final CAMP 1.1 has it,
// or a *.dp, as csd02 does.
package pdp

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"croft/languages/archive"
)

// Package is a package that was opened and checked.
type Package struct {
	PlanName string
	Plan     []byte
	Warnings []string // what the manifest says and the package is not

	files *archive.Archive
}

// PlanName is the usual name of a plan in a package.
const PlanName = "camp.yaml"

// Open opens a package. Its files must have the digests that its manifest, if
// it has one, gives them.
func Open(data []byte) (*Package, error) {
	files, err := archive.Open(data)
	if err != nil {
		return nil, err
	}
	p := &Package{files: files}
	if p.PlanName, err = FindPlan(files.Names()); err != nil {
		return nil, err
	}
	if p.PlanName == "" {
		return nil, fmt.Errorf("the package has no plan: want %s or one file *.dp at its root", PlanName)
	}
	if p.Plan, err = files.ReadFile(p.PlanName); err != nil {
		return nil, err
	}
	manifest, err := one(files.Names(), "manifest", func(name string) bool { return path.Ext(name) == ".mf" })
	if err != nil {
		return nil, err
	}
	if _, err := one(files.Names(), "certificate", func(name string) bool { return path.Ext(name) == ".cert" }); err != nil {
		return nil, err
	}
	if manifest != "" {
		text, err := files.ReadFile(manifest)
		if err != nil {
			return nil, err
		}
		if err := p.check(manifest, string(text)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// FindPlan finds the plan among the files of a package; "" if there is none.
func FindPlan(names []string) (string, error) {
	return one(names, "plan", func(name string) bool { return name == PlanName || path.Ext(name) == ".dp" })
}

// one finds the file at the root that is of a kind; there may be one only.
func one(names []string, what string, is func(string) bool) (string, error) {
	found := ""
	for _, name := range names {
		if strings.Contains(name, "/") || !is(name) {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("the package has two files that are its %s: %s and %s", what, found, name)
		}
		found = name
	}
	return found, nil
}

var digest = regexp.MustCompile(`^([A-Za-z0-9-]+)\s*\((.+)\)\s*=\s*([0-9A-Fa-f]+)$`)

// check compares the files with a manifest, whose lines are as openssl writes
// them: SHA256(web.sh)= 0123…
func (p *Package) check(manifest, text string) error {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		m := digest.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("%s, line %d: want SHA256(NAME)= DIGEST", manifest, number)
		}
		if kind := strings.ReplaceAll(strings.ToUpper(m[1]), "-", ""); kind != "SHA256" {
			return fmt.Errorf("%s, line %d: digests of %s are not checked here: want SHA256", manifest, number, m[1])
		}
		name, err := archive.CleanName(m[2])
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", manifest, number, err)
		}
		data, err := p.files.ReadFile(name)
		if err != nil {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s, line %d: the package has no %s", manifest, number, name))
			continue
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != strings.ToLower(m[3]) {
			return fmt.Errorf("%s, line %d: the digest of %s is %x, not that of the manifest", manifest, number, name, sum)
		}
	}
	return nil
}

// ReadFile returns a file of the package.
func (p *Package) ReadFile(name string) ([]byte, error) { return p.files.ReadFile(name) }

// Names lists the files.
func (p *Package) Names() []string { return p.files.Names() }

// Format is how a package is packed.
type Format string

// The formats.
const (
	Tar Format = "tar"
	Tgz Format = "tgz"
	Zip Format = "zip"
)

// Write packs a plan and its files, of which names lists those to take, and
// adds a manifest.
func Write(w io.Writer, format Format, plan []byte, names []string, read func(name string) ([]byte, error)) error {
	type file struct {
		name string
		data []byte
	}
	files := []file{{PlanName, plan}}
	var manifest strings.Builder
	fmt.Fprintf(&manifest, "SHA256(%s)= %x\n", PlanName, sha256.Sum256(plan))
	for _, name := range names {
		if ext := path.Ext(name); !strings.Contains(name, "/") && (name == PlanName || ext == ".dp" || ext == ".mf" || ext == ".cert") {
			continue
		}
		data, err := read(name)
		if err != nil {
			return fmt.Errorf("packing %s: %w", name, err)
		}
		files = append(files, file{name, data})
		fmt.Fprintf(&manifest, "SHA256(%s)= %x\n", name, sha256.Sum256(data))
	}
	files = append(files, file{"camp.mf", []byte(manifest.String())})
	var out bytes.Buffer
	var err error
	switch format {
	case Zip:
		z := zip.NewWriter(&out)
		for _, f := range files {
			var to io.Writer
			if to, err = z.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate}); err == nil {
				_, err = to.Write(f.data)
			}
			if err != nil {
				return fmt.Errorf("packing %s: %w", f.name, err)
			}
		}
		err = z.Close()
	case Tar, Tgz:
		var to io.WriteCloser = nopCloser{&out}
		if format == Tgz {
			to = gzip.NewWriter(&out)
		}
		t := tar.NewWriter(to)
		for _, f := range files {
			if err = t.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.data)), ModTime: time.Unix(0, 0)}); err == nil {
				_, err = t.Write(f.data)
			}
			if err != nil {
				return fmt.Errorf("packing %s: %w", f.name, err)
			}
		}
		if err = t.Close(); err == nil {
			err = to.Close()
		}
	default:
		return fmt.Errorf("packages are no %q: want %s, %s or %s", format, Tar, Tgz, Zip)
	}
	if err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	_, err = out.WriteTo(w)
	return err
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
