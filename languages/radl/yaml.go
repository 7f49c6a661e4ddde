package radl

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxRecipe bounds the recipes that are read as YAML.
const maxRecipe = 1 << 20

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

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parseYAML reads a recipe. It is nil if the recipe is empty.
func parseYAML(text string) (*yaml.Node, yamlVerdict) {
	if len(text) > maxRecipe {
		return nil, yamlVerdict{fmt.Sprintf("it is longer than %d bytes", maxRecipe), 1}
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	var node, second yaml.Node
	err := d.Decode(&node)
	if errors.Is(err, io.EOF) {
		return nil, yamlVerdict{}
	}
	if err == nil {
		if err = d.Decode(&second); err == nil {
			return nil, yamlVerdict{"it is more than one document", second.Line}
		}
	}
	if !errors.Is(err, io.EOF) {
		v := yamlVerdict{line: 1}
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			v.line, _ = strconv.Atoi(m[1])
		}
		v.what = yamlLine.ReplaceAllString(err.Error(), "")
		return nil, v
	}
	if len(node.Content) == 0 {
		return nil, yamlVerdict{}
	}
	return node.Content[0], yamlVerdict{}
}
