package images

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source is an archive of packages as apt knows it (sources.list(5)).
type source struct {
	uri        string
	suite      string
	components []string
	keyring    string // "" for apt's own
}

// line writes a source as a line of sources.list.
func (s source) line() string {
	options := ""
	if s.keyring != "" {
		options = "[signed-by=" + s.keyring + "] "
	}
	return fmt.Sprintf("deb %s%s %s %s", options, s.uri, s.suite, strings.Join(s.components, " "))
}

// machineSources reads where this machine has its packages from.
func machineSources() ([]source, error) {
	files, err := filepath.Glob("/etc/apt/sources.list.d/*")
	if err != nil {
		return nil, err
	}
	var out []source
	for _, name := range append([]string{"/etc/apt/sources.list"}, files...) {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read this machine's sources of packages: %w", err)
		}
		switch filepath.Ext(name) {
		case ".list":
			out = append(out, readLines(f)...)
		case ".sources":
			out = append(out, readStanzas(f)...)
		}
		f.Close()
	}
	return out, nil
}

// readLines reads the one-line format.
func readLines(r io.Reader) []source {
	var out []source
	for lines := bufio.NewScanner(r); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		text = strings.TrimSpace(text)
		rest, ok := strings.CutPrefix(text, "deb ")
		if !ok {
			continue
		}
		s := source{}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			options, after, closed := strings.Cut(rest[1:], "]")
			if !closed {
				continue
			}
			for o := range strings.FieldsSeq(options) {
				if value, ok := strings.CutPrefix(o, "signed-by="); ok {
					s.keyring = value
				}
			}
			rest = after
		}
		fields := strings.Fields(rest)
		if len(fields) < 3 {
			continue
		}
		s.uri, s.suite, s.components = fields[0], fields[1], fields[2:]
		out = append(out, s)
	}
	return out
}

// readStanzas reads the format of fields and stanzas.
func readStanzas(r io.Reader) []source {
	var out []source
	fields := map[string]string{}
	end := func() {
		defer clear(fields)
		if !slices.Contains(strings.Fields(fields["types"]), "deb") || strings.EqualFold(strings.TrimSpace(fields["enabled"]), "no") {
			return
		}
		keyring := strings.TrimSpace(fields["signed-by"])
		if !strings.HasPrefix(keyring, "/") || strings.ContainsAny(keyring, " \n") {
			keyring = "" // a key within the file: apt's own keyrings may do
		}
		for _, uri := range strings.Fields(fields["uris"]) {
			for _, suite := range strings.Fields(fields["suites"]) {
				if components := strings.Fields(fields["components"]); len(components) > 0 {
					out = append(out, source{uri: uri, suite: suite, components: components, keyring: keyring})
				}
			}
		}
	}
	last := ""
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.TrimSpace(line) == "":
			end()
		case strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			fields[last] += "\n" + line
		default:
			name, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(strings.TrimSpace(name))
			fields[last] = value
		}
	}
	end()
	return out
}

// mirrorsOf chooses the sources for a suite: those of it, its updates and its
// security; for a suite that the machine does not use, the archive that has
// the machine's own system.
func mirrorsOf(all []source, suite string) []source {
	main := func(s source) bool { return slices.Contains(s.components, "main") }
	var out []source
	for _, s := range all {
		if main(s) && (s.suite == suite || strings.HasPrefix(s.suite, suite+"-")) {
			out = append(out, s)
		}
	}
	// The suite itself comes first.
	slices.SortStableFunc(out, func(a, b source) int { return len(a.suite) - len(b.suite) })
	if len(out) > 0 && out[0].suite == suite {
		return out
	}
	// An archive that has a suite and updates to it is a distribution's.
	for _, s := range all {
		updated := slices.ContainsFunc(all, func(o source) bool { return o.uri == s.uri && o.suite == s.suite+"-updates" })
		if main(s) && updated {
			return []source{{uri: s.uri, suite: suite, components: []string{"main"}, keyring: s.keyring}}
		}
	}
	for _, s := range all {
		if main(s) && !strings.ContainsAny(s.suite, "-/") {
			return []source{{uri: s.uri, suite: suite, components: []string{"main"}, keyring: s.keyring}}
		}
	}
	return nil
}
