package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"croft/internal/config"
	"croft/languages"
	"croft/languages/camp"
	"croft/languages/playbook"
	"croft/languages/radl"
	"croft/languages/tosca"
	"croft/languages/zapp"
	"croft/rspec"
)

// requestLanguages are the languages that requests can be written in, the
// stricter ones first.
func requestLanguages(playbooks playbook.Policy) languages.Set {
	return languages.Set{rspec.Language{}, radl.Language{Playbooks: playbooks}, zapp.Language{}, camp.Language{}, tosca.Language{Playbooks: playbooks}}
}

// languages are those of the aggregate in --dir, or those that an aggregate
// has which is told nothing.
func (a *app) languages() languages.Set {
	conf, err := config.Load(a.path("croft.yaml"))
	if err != nil {
		return requestLanguages(playbook.OfImage)
	}
	return requestLanguages(playbook.Policy(conf.Radl.Playbooks))
}

// check tells about a document what rspec.Language.Check does, whatever its
// language.
func (a *app) check(ctx context.Context, document []byte, scope languages.Scope) (*rspec.Report, error) {
	language, err := a.languages().For(document)
	if err != nil {
		if bytes.HasPrefix(bytes.TrimSpace(document), []byte("<")) {
			return rspec.Language{}.Check(document, scope) // says more of XML
		}
		return nil, err
	}
	if l, ok := language.(rspec.Language); ok {
		return l.Check(document, scope)
	}
	compiled, err := language.Compile(ctx, document, scope)
	if err != nil {
		return nil, err
	}
	return &rspec.Report{Warnings: compiled.Warnings, Nodes: len(compiled.Request.Nodes), Links: len(compiled.Request.Links)}, nil
}

// inputFlags gives a command the flags that inputs come by.
func inputFlags(c *cobra.Command) func() (map[string]any, error) {
	var file string
	var single []string
	c.Flags().StringVar(&file, "inputs", "", "`FILE` with values for inputs, YAML or JSON")
	c.Flags().StringArrayVar(&single, "input", nil, "`NAME=VALUE` of an input; may be repeated")
	return func() (map[string]any, error) { return readInputs(file, single) }
}

// readInputs reads values for the parameters of a document: those of a file,
// and single ones, which go before.
func readInputs(file string, single []string) (map[string]any, error) {
	inputs := map[string]any{}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("inputs: %w", err)
		}
		if err := yaml.Unmarshal(data, &inputs); err != nil {
			return nil, fmt.Errorf("inputs %s: %w", file, err)
		}
	}
	for _, s := range single {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--input %s: want NAME=VALUE", s)
		}
		inputs[name] = value
	}
	return inputs, nil
}
