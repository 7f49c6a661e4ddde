package radl

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"croft/languages/playbook"
)

// yamlVerdict is whether a text is YAML.
type yamlVerdict struct {
	what string // why it is not; "" if it is
	line int    // of the recipe, from 1
}

// isScript reports whether a recipe is a script of its own.
func isScript(recipe string) bool {
	return strings.HasPrefix(strings.TrimLeft(recipe, " \t\r\n"), "#!")
}

// recipe checks that a recipe is YAML, if it is not a script.
func (c *checker) recipe(r *Configure) {
	if r.Recipe == "" || isScript(r.Recipe) {
		return
	}
	v, ok := c.yaml[r.Recipe]
	if !ok {
		_, v = parseYAML(r.Recipe)
		c.yaml[r.Recipe] = v
	}
	if v.what != "" {
		at := r.RecipeAt
		for range v.line - 1 {
			n := strings.IndexByte(string(c.source.text[at:]), '\n')
			if n < 0 {
				break
			}
			at += n + 1
		}
		c.problem(at, fmt.Sprintf("the recipe %s is not YAML: %s", r.Name, v.what), "")
	}
}

// parseYAML reads a recipe. It is nil if the recipe is empty.
func parseYAML(text string) (*yaml.Node, yamlVerdict) {
	node, err := playbook.Parse(text)
	var wrong *playbook.Error
	if errors.As(err, &wrong) {
		return nil, yamlVerdict{wrong.What, wrong.Line}
	}
	return node, yamlVerdict{}
}
