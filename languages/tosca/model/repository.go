package model

import (
	"path"
	"strings"

	"croft/languages/tree"
)

// repository is where files are (csd05, 5.2.3.2): a place in the archive or
// folder, or one of the network, which is not asked.
type repository struct {
	url  *tree.Node // nil: none was written
	unit *Unit      // that defines it: what is relative is so to its file
}

// Machine are files of a machine, which have paths outside of the folder, too:
// those of commands that users run on their own files.
type Machine interface {
	// Relative is the name of the file with an absolute path.
	Relative(path string) (string, bool)
}

func (u *Unit) readRepositories() {
	u.repositories = map[string]repository{}
	for _, e := range entries(u.Root.Get("repositories")) {
		if !u.nameable(e.Key, "a repository") {
			continue
		}
		url := e.Value
		if url.Kind != tree.String {
			if !u.keys(url, &repositoryKeys) {
				continue
			}
			url = url.Get("url")
		}
		u.repositories[e.Key.Text] = repository{url, u}
		if url.Is(tree.String) && (url.Text == "" || strings.ContainsAny(url.Text, " \t\n")) && !u.Old() {
			u.errorf(url, "", "%s is no address of a repository", url.Short())
		}
	}
}

// inheritRepositories takes those of the files that are imported into the same
// namespace.
func (u *Unit) inheritRepositories() {
	for _, other := range u.plain {
		for name, r := range other.repositories {
			own, twice := u.repositories[name]
			if !twice {
				u.repositories[name] = r
			} else if own.unit == u && own.url != r.url && !u.Old() {
				u.errorf(u.Root.Get("repositories").KeyOf(name), "import the file into a namespace", "repository %s is defined here and in %s, which is imported into the same namespace", name, other.Name)
			}
		}
	}
}

// place is where a URL leads: the name of a file or folder, or the network.
// A URL without scheme is relative to the file that it stands in.
func (u *Unit) place(url string) (name string, remote bool) {
	scheme, rest, ok := strings.Cut(url, ":")
	switch {
	case !ok || !isScheme(scheme):
		if strings.HasPrefix(url, "/") {
			return path.Clean(strings.TrimLeft(url, "/")), false
		}
		return path.Join(path.Dir(u.Name), url), false
	case !strings.EqualFold(scheme, "file"):
		return "", true
	case !strings.HasPrefix(rest, "/"):
		return path.Join(path.Dir(u.Name), rest), false
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "//localhost"), "//")
	if m, ok := u.files.(Machine); ok && strings.HasPrefix(rest, "/") {
		if name, ok := m.Relative(rest); ok {
			return name, false
		}
	}
	return "", true
}

// located is the file that a path in a repository (nil: none) leads to. What
// says what is wrong; remote is the URL of a file of the network.
func (u *Unit) located(file string, in *tree.Node) (name, remote, what string) {
	if !in.Is(tree.String) {
		if name, far := u.place(file); !far {
			return name, "", ""
		}
		return "", file, ""
	}
	r, ok := u.repositories[in.Text]
	for i := 0; i < len(u.plain) && !ok; i++ {
		r, ok = u.plain[i].repositories[in.Text] // of an import before this one
	}
	if !ok || !r.url.Is(tree.String) {
		return "", "", "there is no repository " + in.Short()
	}
	root, far := r.unit.place(r.url.Text)
	file = strings.TrimPrefix(file, "/")
	if far {
		return "", strings.TrimSuffix(r.url.Text, "/") + "/" + file, ""
	}
	return path.Join(root, file), "", ""
}

// file reads an imported file. Unread: it is one of the network, which is not
// asked.
func (u *Unit) file(url, in *tree.Node) (_ *Unit, unread bool) {
	text := strings.TrimSpace(url.Text)
	if text == "" {
		u.errorf(url, "", "the url of an import is empty")
		return nil, false
	}
	if scheme, _, ok := strings.Cut(text, ":"); ok && isScheme(scheme) && in != nil {
		u.errorf(in, "", "a URL with a scheme needs no repository")
		in = nil
	}
	name, remote, what := u.located(text, in)
	switch {
	case what != "":
		u.errorf(in, "", "%s", what)
		return nil, false
	case remote != "":
		u.notRead(url, remote)
		return nil, true
	}
	return u.run.load(u.files, name, u, url), false
}

func (u *Unit) notRead(n *tree.Node, url string) {
	u.run.problems.add(u, n, Problem{What: "import of " + url + " was not read: nothing is fetched", Warning: true, Unresolvable: true,
		Hint: "put the file into the archive"})
}

func isScheme(s string) bool {
	if len(s) < 2 {
		return false
	}
	return strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}
