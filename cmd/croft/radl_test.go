package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/rest"
	"croft/urn"
)

const radlNode = "system node (cpu.count = @input.CPUs@ and memory.size >= 512M)\ndeploy node 1\n"

func TestTranslate(t *testing.T) {
	t.Setenv("CROFT_DIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "node.radl")
	if err := os.WriteFile(file, []byte(radlNode), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		args   []string
		status int
		out    string // in standard output
		err    string // in standard error
	}{
		{"RSpec", []string{"--input", "CPUs=2"}, 0, `cores="2"`, ""},
		{"JSON", []string{"--to", "json", "--input", "CPUs=2"}, 0, `"memory.size_min": 512000000`, ""},
		{"text", []string{"--to", "radl", "--input", "CPUs=2"}, 0, "cpu.count = 2 and", ""},
		{"no value", []string{"--to", "json"}, 1, "", "node.radl:1:26: error: the parameter CPUs has no value"},
		{"wrong value", []string{"--input", "CPUs=two"}, 1, "", "node.radl:1:26: error: "},
		{"other language", []string{"--to", "zapp"}, 1, "", "want rspec, radl or json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, errs, status := run(t, "", append([]string{"translate", file}, test.args...)...)
			if status != test.status || !strings.Contains(out, test.out) || !strings.Contains(errs, test.err) {
				t.Errorf("status %d\nstandard output: %s\nstandard error: %s", status, out, errs)
			}
		})
	}
	if _, errs, status := run(t, "<rspec/>", "translate", "-", "--to", "json"); status != 1 || !strings.Contains(errs, "only RADL") {
		t.Errorf("an RSpec as RADL: %d %s", status, errs)
	}
}

// The hashes that the commands print open accounts.
func TestAccountSecrets(t *testing.T) {
	hash, _, status := run(t, "a long password\n", "account", "hash")
	if status != 0 {
		t.Fatalf("account hash: %d", status)
	}
	if _, errs, status := run(t, "short\n", "account", "hash"); status != 1 || strings.Contains(errs, "short\n") {
		t.Errorf("a short password: %d %s", status, errs)
	}
	printed, _, status := run(t, "", "account", "token")
	token, tokenHash, ok := strings.Cut(strings.TrimPrefix(printed, "token: "), "\nhash:  ")
	if status != 0 || !ok {
		t.Fatalf("account token: %d %q", status, printed)
	}
	member := urn.MustParse("urn:publicid:IDN+example.org+user+alice")
	a, err := rest.NewAccounts([]rest.Account{{Name: "alice", Password: strings.TrimSpace(hash), Token: strings.TrimSpace(tokenHash), Member: member}}, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Password(t.Context(), "", "alice", "a long password"); err != nil {
		t.Error(err)
	}
	if _, err := a.Token(t.Context(), "", token); err != nil {
		t.Error(err)
	}
}
