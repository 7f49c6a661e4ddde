package playbook

import (
	"strings"
	"testing"
)

func TestLocal(t *testing.T) {
	for _, c := range []struct {
		name, text, want string // want begins with "!": refused with these words
	}{
		{"a play without hosts", "- tasks: []\n", "- hosts: all\n  tasks: []\n"},
		{"a play for all", "- hosts: all\n  tasks: []\n", "- hosts: all\n  tasks: []\n"},
		{"a play for this machine", "- hosts: localhost\n  roles: [ a ]\n", "- hosts: localhost\n  roles: [ a ]\n"},
		{"a play for others", "- tasks: []\n- hosts: web\n  tasks: []\n", "!line 2 of it is a play for other hosts"},
		{"a play for a list", "- hosts: [ all ]\n  tasks: []\n", "!line 1 of it is a play for other hosts"},
		{"two plays", "- name: ä\n  tasks: []\n- roles: [ b ]\n", "- hosts: all\n  name: ä\n  tasks: []\n- hosts: all\n  roles: [ b ]\n"},
		{"in one line", "[ { tasks: [] } ]", "[ { hosts: all, tasks: [] } ]"},
		{"an import", "- import_playbook: other.yml\n", "- import_playbook: other.yml\n"},
		{"a map", "tasks: []\n", "!it is no playbook"},
		{"a play that is a string", "- hello\n", "!line 1 of it is no play"},
		{"an empty play", "- {}\n", "!line 1 of it is no play"},
		{"nothing", "", "!it is no playbook"},
		{"no YAML", "- [", "!it is no playbook"},
		{"two documents", "- tasks: []\n---\n- tasks: []\n", "!it is no playbook"},
		{"too long", "- tasks: " + strings.Repeat("x", MaxText), "!it is no playbook"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, what := Local(c.text)
			if words, refused := strings.CutPrefix(c.want, "!"); refused {
				if !strings.HasPrefix(what, words) {
					t.Errorf("refused with %q, want %q", what, words)
				}
			} else if what != "" || string(got) != c.want {
				t.Errorf("%q, %q, want %q", got, what, c.want)
			}
		})
	}
}

func FuzzLocal(f *testing.F) {
	f.Add("- tasks: []\n- { name: ä }\n")
	f.Add("[0: 0]")
	f.Fuzz(func(t *testing.T, text string) {
		book, what := Local(text)
		if (book == nil) == (what == "") && text != "" {
			t.Fatalf("both or none of a playbook and a reason: %q", what)
		}
		if what != "" {
			return
		}
		if again, what := Local(string(book)); what != "" || string(again) != string(book) {
			t.Fatalf("%q is made of %q, and it of itself: %q, %s", book, text, again, what)
		}
	})
}
