package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"croft/client"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// run runs the program in this process.
func run(t *testing.T, stdin string, args ...string) (out, errs string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	a := &app{in: strings.NewReader(stdin), out: &o, errs: &e, now: func() time.Time { return noon }}
	status = a.run(context.Background(), args)
	return o.String(), e.String(), status
}

func TestUsage(t *testing.T) {
	t.Setenv("CROFT_DIR", t.TempDir())
	for _, test := range []struct {
		name   string
		args   []string
		status int
		out    string // in standard output
		err    string // in standard error
	}{
		{"alone", nil, 0, "Experiments:", ""},
		{"help", []string{"help", "up"}, 0, "wait until", ""},
		{"unknown command", []string{"statsu"}, 1, "", `no command "statsu" (did you mean status?)`},
		{"unknown subcommand", []string{"member", "remove"}, 1, "", `croft member has no command "remove"`},
		{"unknown flag", []string{"status", "--fast"}, 1, "", "usage: croft status SLICE"},
		{"too few arguments", []string{"allocate", "exp1"}, 1, "", "usage: croft allocate SLICE FILE"},
		{"ssh without a node", []string{"ssh", "exp1"}, 1, "", "usage: croft ssh SLICE NODE"},
		{"no federation", []string{"slice", "add", "exp1"}, 1, "", "croft init"},
		{"no member", []string{"status", "exp1"}, 1, "", "croft member add"},
		{"completion", []string{"completion", "bash"}, 0, "bash completion", ""},
		{"schema", []string{"inventory", "schema"}, 0, `"$schema"`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, errs, status := run(t, "", test.args...)
			if status != test.status || !strings.Contains(out, test.out) || !strings.Contains(errs, test.err) {
				t.Errorf("status %d\nstandard output: %s\nstandard error: %s", status, out, errs)
			}
			if status != 0 && !strings.HasPrefix(errs, "croft: ") {
				t.Errorf("standard error is %q", errs)
			}
		})
	}
}

// Every command says what it is for and refuses what it does not know.
func TestEveryCommand(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || c.Runnable() && c.Args == nil {
			t.Errorf("%s: Short is %q, Args set: %v", c.CommandPath(), c.Short, c.Args != nil)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	a := &app{in: strings.NewReader(""), out: new(bytes.Buffer), errs: new(bytes.Buffer), now: time.Now}
	walk(a.rootCommand())
}

func TestValidate(t *testing.T) {
	t.Setenv("CROFT_DIR", t.TempDir())
	requests := filepath.Join("..", "..", "testdata", "requests")
	good, err := os.ReadFile(filepath.Join(requests, "two-nodes.rspec"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		file   string
		stdin  string
		status int
		want   string
	}{
		{"good", filepath.Join(requests, "two-nodes.rspec"), "", 0, "nodes 2, links 1"},
		{"from standard input", "-", string(good), 0, "nodes 2, links 1"},
		{"mistakes", filepath.Join(requests, "mistakes.rspec"), "", 1, "mistakes.rspec:2:3: error: "},
		{"no request", "-", "<html/>", 1, "error: "},
		{"no file", "nothing.rspec", "", 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, errs, status := run(t, test.stdin, "validate", test.file)
			if status != test.status || !strings.Contains(out, test.want) {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
			if test.file == "nothing.rspec" {
				return
			}
			out, _, status = run(t, test.stdin, "validate", test.file, "--json")
			var answer struct {
				Valid    bool
				Findings []finding
			}
			if err := json.Unmarshal([]byte(out), &answer); err != nil || status != test.status {
				t.Errorf("--json: status %d, %v\n%s", status, err, out)
			}
			if answer.Valid != (test.status == 0) || !answer.Valid && len(answer.Findings) == 0 {
				t.Errorf("--json: %+v", answer)
			}
		})
	}
}

func TestParseEnd(t *testing.T) {
	a := &app{now: func() time.Time { return noon }}
	for _, test := range []struct {
		text string
		want time.Time
	}{
		{"", time.Time{}},
		{"12h", noon.Add(12 * time.Hour)},
		{"+3d", noon.Add(72 * time.Hour)},
		{"2026-01-05T00:00:00Z", time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)},
	} {
		if got, err := a.parseEnd(test.text); err != nil || !got.Equal(test.want) {
			t.Errorf("%q is %s (%v), want %s", test.text, got, err, test.want)
		}
	}
	for _, text := range []string{"soon", "-3d", "0s", "2026-13-01T00:00:00Z"} {
		if got, err := a.parseEnd(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for text, want := range map[string]string{
		"/srv/croft": "/srv/croft", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'",
	} {
		if got := shellQuote(text); got != want {
			t.Errorf("%q is quoted as %s, want %s", text, got, want)
		}
	}
}

// Where standard error is no terminal, progress is one line a step, and none
// twice.
func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	two := []client.Sliver{{}, {}}
	for _, r := range []client.Progress{
		{Phase: client.Allocating}, {Phase: client.Provisioning, Slivers: two},
		{Phase: client.Making, Slivers: two}, {Phase: client.Making, Slivers: two},
		{Phase: client.Making, Slivers: two, Done: 1}, {Phase: client.Done, Slivers: two, Done: 2},
	} {
		p.report(r)
	}
	p.close()
	var got []string
	for line := range strings.Lines(out.String()) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), "  ")
		got = append(got, text)
	}
	want := "allocating|provisioning|making (0 of 2 slivers)|making (1 of 2 slivers)|ready (2 of 2 slivers)"
	if strings.Join(got, "|") != want {
		t.Errorf("progress is\n%s", out.String())
	}
}

// A member's folder is found by its name and by its path.
func TestMemberDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "members", "bob"), 0o700); err != nil {
		t.Fatal(err)
	}
	for member, want := range map[string]string{
		"":             filepath.Join(dir, "members", "alice"),
		"bob":          filepath.Join(dir, "members", "bob"),
		"./keys/carol": "keys/carol",
		"/keys/dave/":  "/keys/dave",
	} {
		a := &app{dir: dir, member: member}
		if got := a.memberDir(); got != want {
			t.Errorf("--member %q is %s, want %s", member, got, want)
		}
	}
}
