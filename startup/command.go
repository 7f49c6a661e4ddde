package startup

import (
	"fmt"
	"regexp"
	"strings"

	"croft/request"
)

// Variable is a name in an environment and its value, which is known.
type Variable struct{ Name, Value string }

// variableName is what a shell takes for one.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Command writes what a step runs as text for /bin/sh.
func Command(r *request.Run, env []Variable) string {
	var b strings.Builder
	b.WriteString("umask 022\n")
	for _, v := range env {
		fmt.Fprintf(&b, "export %s=%s\n", v.Name, quote(v.Value))
	}
	dir := `"$HOME"`
	if r.Dir != "" {
		dir = quote(r.Dir)
	}
	fmt.Fprintf(&b, "cd %s || exit 1\n", dir)
	words := r.Args
	if len(words) == 0 {
		shell := r.Shell
		if shell == "" {
			shell = "/bin/sh"
		}
		words = []string{shell, "-c", r.Command}
	}
	b.WriteString("exec")
	for _, w := range words {
		b.WriteString(" " + quote(w))
	}
	b.WriteString("\n")
	return b.String()
}

// quote writes a word that a shell reads as it is.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
