package csar

import (
	"fmt"
	"regexp"
	"strings"

	"croft/languages/archive"
)

// Archive is a Cloud Service Archive that was unpacked.
type Archive struct {
	Entry  string   // Entry-Definitions
	Others []string // Other-Definitions
	Meta   map[string]string

	files    *archive.Archive
	profiles map[string]string
}

// Open unpacks an archive.
func Open(data []byte) (*Archive, error) {
	files, err := archive.Open(data)
	if err != nil {
		return nil, err
	}
	a := &Archive{files: files, profiles: map[string]string{}}
	if err := a.entries(); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	for _, name := range a.Names() {
		if isYAML(name) {
			text, _ := a.ReadFile(name)
			note(a.profiles, name, text)
		}
	}
	return a, nil
}

// Names lists the files, sorted.
func (a *Archive) Names() []string { return a.files.Names() }

// ReadFile returns a file of the archive.
func (a *Archive) ReadFile(name string) ([]byte, error) { return a.files.ReadFile(name) }

// Profile names the file of the archive that defines a profile, or "".
func (a *Archive) Profile(profile string) string { return a.profiles[profile] }

// entries finds the file to begin with.
func (a *Archive) entries() error {
	const inFolder, atRoot = "TOSCA-Metadata/TOSCA.meta", "TOSCA.meta"
	meta, err := a.ReadFile(inFolder)
	name := inFolder
	if root, rootErr := a.ReadFile(atRoot); rootErr == nil {
		if err == nil {
			return fmt.Errorf("both %s and %s are in it: want one", atRoot, inFolder)
		}
		meta, name, err = root, atRoot, nil
	}
	if err == nil {
		return a.readMeta(name, meta)
	}
	var roots []string
	for _, file := range a.Names() {
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
	clean, err := archive.CleanName(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", meta, err)
	}
	if _, err := a.ReadFile(clean); err != nil {
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

// VersionKey finds the first keyname of TOSCA files.
var VersionKey = regexp.MustCompile(`(?m)^["']?tosca_definitions_version["']?[ \t]*:`)

// Detect reports whether an archive looks like one of TOSCA: it has a
// TOSCA.meta, or a TOSCA file at its root, or cannot be read.
func Detect(data []byte) bool {
	files, err := archive.Open(data)
	if err != nil {
		return true
	}
	for _, name := range files.Names() {
		if name == "TOSCA.meta" || name == "TOSCA-Metadata/TOSCA.meta" {
			return true
		}
		if !strings.Contains(name, "/") && isYAML(name) {
			if text, err := files.ReadFile(name); err == nil && VersionKey.Match(text[:min(len(text), 1<<20)]) {
				return true
			}
		}
	}
	return false
}
