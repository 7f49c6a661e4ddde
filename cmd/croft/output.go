package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"croft/client"
)

func (a *app) writeJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// warn tells something that does not stop the command.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.errs, "croft: warning: "+format+"\n", args...)
}

// writeRemarks tells what an aggregate says about a request that it took.
func (a *app) writeRemarks(output string) {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(a.errs, "croft: %s\n", line)
		}
	}
}

// writeSlivers lists slivers.
func (a *app) writeSlivers(slivers []client.Sliver) error {
	if a.json {
		if slivers == nil {
			slivers = []client.Sliver{}
		}
		return a.writeJSON(slivers)
	}
	if len(slivers) == 0 {
		fmt.Fprintln(a.out, "no slivers")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SLIVER\tALLOCATION\tSTATE\tEXPIRES\tERROR")
	for _, s := range slivers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.URN, short(s.Allocation), short(s.Operational), when(s.Expires), oneLine(s.Error))
	}
	if err := w.Flush(); err != nil || len(stepNames(slivers)) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	return a.writeSteps(slivers)
}

// short leaves out what all states begin with.
func short(state string) string {
	if state == "" {
		return "-"
	}
	return strings.TrimPrefix(state, "geni_")
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// shellQuote writes a word for a shell.
func shellQuote(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+=,", r))
	}) < 0
	if plain && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// orDash keeps a column of a table from being empty.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
