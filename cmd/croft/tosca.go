package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"croft/internal/atomicfile"
	"croft/languages/archive"
	"croft/languages/tosca"

	"croft/languages/tosca/model"
)

func (a *app) toscaCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "tosca",
		Short: "Check, show and draw TOSCA service templates",
		Long: `Work with TOSCA service templates: TOSCA 2.0, and the Simple Profile 1.0 to 1.3
as far as it means the same. FILE is a TOSCA file with what lies around it, or
an archive (CSAR: zip or tar). Nothing is fetched from the network.

To deploy one, give it to croft up like any request.`,
	})
	c.AddCommand(a.toscaCheckCommand(), a.toscaShowCommand(), a.toscaGraphCommand(), a.toscaPackCommand())
	return c
}

// toscaRequest makes what is sent of a request's file: archives, and TOSCA files
// that use others, go as the base64 text of an archive; the rest as it is.
func toscaRequest(ctx context.Context, file string, data []byte) (string, error) {
	if archive.Is(data) {
		return tosca.Encode(data), nil
	}
	if !(tosca.Language{}).Detect(data) {
		return campRequest(file, data)
	}
	archive, count, err := tosca.Pack(ctx, file)
	if err != nil {
		return "", fmt.Errorf("read request: %w", err)
	}
	if count <= 1 {
		return string(data), nil
	}
	return tosca.Encode(archive), nil
}

func (a *app) toscaPackCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pack FILE ARCHIVE.csar",
		Short: "Pack a TOSCA file and all that it uses into an archive",
		Long: `Make an archive (CSAR) of a TOSCA file, what it imports, and the files of its
artifacts. croft up and the other commands that take requests do so by
themselves.`,
		Example: "  croft tosca pack service.yaml service.csar",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			archive, count, err := tosca.Pack(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := atomicfile.Write(args[1], archive, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s: %d files\n", args[1], count)
			return nil
		},
	}
}

// writeOutputs tells outputs, one a line.
func (a *app) writeOutputs(outputs map[string]any) error {
	if a.json {
		if outputs == nil {
			outputs = map[string]any{}
		}
		return a.writeJSON(outputs)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OUTPUT\tVALUE")
	for _, name := range sortedNames(outputs) {
		fmt.Fprintf(w, "%s\t%s\n", name, valueText(outputs[name]))
	}
	return w.Flush()
}

// valueText writes a value for people: texts as they are, the rest as JSON.
func valueText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

func (a *app) toscaRead(cmd *cobra.Command, file string, inputs map[string]any) (*model.Result, error) {
	source, err := tosca.OpenFile(file)
	if err != nil {
		return nil, err
	}
	return source.Check(cmd.Context(), inputs, false)
}

func (a *app) toscaCheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Say whether a TOSCA file or archive is valid",
		Long: `Read a TOSCA file or archive and all that it imports, and say what is wrong:
file, line, column, the place in the model, and what would be right. All is told
in one run. With inputs, what is computed from them is checked, too.

Exit status: 0 if it is valid, 1 if not. Warnings change nothing about that.`,
		Example: "  croft tosca check service.yaml\n  croft tosca check service.csar --inputs values.yaml --json",
		Args:    cobra.ExactArgs(1),
	}
	inputs := inputFlags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		given, err := inputs()
		if err != nil {
			return err
		}
		result, err := a.toscaRead(cmd, args[0], given)
		var unreadable *os.PathError
		if errors.As(err, &unreadable) {
			return err
		}
		if err != nil {
			result = &model.Result{Problems: []model.Problem{{File: filepath.Base(args[0]), What: err.Error()}}}
		}
		return a.toscaReport(args[0], result)
	}
	return c
}

func (a *app) toscaReport(file string, result *model.Result) error {
	valid := result.Valid()
	if a.json {
		problems := result.Problems
		if problems == nil {
			problems = []model.Problem{}
		}
		if err := a.writeJSON(map[string]any{"file": file, "valid": valid, "problems": problems}); err != nil {
			return err
		}
	} else {
		dir := filepath.Dir(file)
		for _, p := range result.Problems {
			if p.File != "" && !strings.HasPrefix(p.File, "built-in") && dir != "." {
				p.File = filepath.Join(dir, p.File)
			}
			fmt.Fprintln(a.out, p)
		}
		if valid {
			fmt.Fprintf(a.out, "%s is valid\n", file)
		}
	}
	if !valid {
		if !a.json {
			fmt.Fprintf(a.errs, "croft: %s is not valid\n", file)
		}
		return exitStatus(1)
	}
	return nil
}

// toscaService reads a file that must be valid and have a service template.
func (a *app) toscaService(cmd *cobra.Command, file string, inputs map[string]any) (*model.Service, error) {
	result, err := a.toscaRead(cmd, file, inputs)
	if err != nil {
		return nil, err
	}
	if !result.Valid() {
		for _, p := range result.Problems {
			if !p.Warning {
				fmt.Fprintln(a.errs, p)
			}
		}
		return nil, fmt.Errorf("%s is not valid", file)
	}
	if result.Service == nil {
		return nil, fmt.Errorf("%s has no service template", file)
	}
	return result.Service, nil
}

func (a *app) toscaShowCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show FILE",
		Short: "Show what a service template resolves to",
		Long: `Show the nodes of a service template with the values of their properties, what
their requirements lead to, and the outputs. What is known only once the service
runs is shown as unknown.`,
		Args: cobra.ExactArgs(1),
	}
	inputs := inputFlags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		given, err := inputs()
		if err != nil {
			return err
		}
		s, err := a.toscaService(cmd, args[0], given)
		if err != nil {
			return err
		}
		shown := tosca.Show(s)
		if a.json {
			return a.writeJSON(shown)
		}
		return writeShown(a.out, shown)
	}
	return c
}

func writeShown(out io.Writer, s *tosca.Shown) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	value := func(v any) string {
		if m, ok := v.(map[string]any); ok && len(m) == 1 && m["unknown"] == true {
			return "(known once it runs)"
		}
		return valueText(v)
	}
	table := func(indent string, m map[string]any) {
		for _, name := range sortedNames(m) {
			fmt.Fprintf(w, "%s%s\t%s\n", indent, name, value(m[name]))
		}
	}
	if len(s.Inputs) > 0 {
		fmt.Fprintln(w, "INPUTS")
		table("  ", s.Inputs)
	}
	for _, n := range s.Nodes {
		times := ""
		if n.Count != 1 {
			times = fmt.Sprintf(" × %d", n.Count)
		}
		fmt.Fprintf(w, "NODE %s%s\t%s\n", n.Name, times, n.Type)
		table("  ", n.Properties)
		for _, c := range sortedNames(n.Capabilities) {
			table("  "+c+".", n.Capabilities[c])
		}
		for _, r := range n.Relationships {
			fmt.Fprintf(w, "  → %s\t%s (%s)\n", r.Requirement, r.Node, r.Type)
		}
		for _, open := range n.Open {
			fmt.Fprintf(w, "  → %s\t(not in the template)\n", open)
		}
	}
	for _, g := range s.Groups {
		fmt.Fprintf(w, "GROUP %s\t%s\n", g.Name, strings.Join(g.Members, ", "))
	}
	if len(s.Outputs) > 0 {
		fmt.Fprintln(w, "OUTPUTS")
		table("  ", s.Outputs)
	}
	return w.Flush()
}

func sortedNames[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (a *app) toscaGraphCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "graph FILE [PICTURE.svg]",
		Short:   "Draw a service template as SVG",
		Long:    "Draw the nodes of a service template and what they need, as SVG: to the file\nPICTURE.svg, or to standard output.",
		Example: "  croft tosca graph service.yaml service.svg",
		Args:    cobra.RangeArgs(1, 2),
	}
	inputs := inputFlags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		given, err := inputs()
		if err != nil {
			return err
		}
		s, err := a.toscaService(cmd, args[0], given)
		if err != nil {
			return err
		}
		var drawn strings.Builder
		if err := tosca.Draw(s, filepath.Base(args[0])).Write(&drawn); err != nil {
			return err
		}
		if len(args) < 2 {
			_, err := io.WriteString(a.out, drawn.String())
			return err
		}
		return atomicfile.Write(args[1], []byte(drawn.String()), 0o644)
	}
	return c
}
