package radl

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"croft/languages"
	"croft/request"
)

// problem is one thing to tell the author.
type problem = languages.Problem

// cloudInit makes steps of a cloud-config: of the modules that have a meaning
// in nodes here. Others are refused.
func (s *stepper) cloudInit(r *Configure, machines []int, place request.Place) {
	if isScript(r.Recipe) {
		for _, i := range machines {
			s.script(&s.machines[i], r.Name, r.Recipe, place)
		}
		return
	}
	root, verdict := parseYAML(r.Recipe)
	if verdict.what != "" || root == nil {
		return // told by the checks
	}
	if root.Kind != yaml.MappingNode {
		s.refuse(r.Offset, fmt.Sprintf("the recipe %s is no cloud-config", r.Name), "want keys such as runcmd, write_files and packages")
		return
	}
	x := cloudConfig{name: r.Name, modules: map[string]*yaml.Node{}}
	for i := 0; i+1 < len(root.Content); i += 2 {
		x.modules[root.Content[i].Value] = root.Content[i+1]
		if !cloudModules[root.Content[i].Value] {
			s.refuse(r.Offset, fmt.Sprintf("the recipe %s: the module %s of cloud-init is not done here", r.Name, shorten(root.Content[i].Value)),
				"done are bootcmd, runcmd, write_files, packages, package_update and package_upgrade")
		}
	}
	steps := x.steps()
	for _, what := range x.wrong {
		s.refuse(r.Offset, fmt.Sprintf("the recipe %s: %s", r.Name, what), "")
	}
	if len(x.wrong) > 0 {
		return
	}
	for _, i := range machines {
		for _, step := range steps {
			own := step.Step
			s.add(&s.machines[i], r.Name+"."+step.module, own, place)
		}
	}
}

var cloudModules = map[string]bool{
	"bootcmd": true, "runcmd": true, "write_files": true, "packages": true, "package_update": true, "package_upgrade": true,
}

// cloudConfig is a cloud-config being read.
type cloudConfig struct {
	name    string
	modules map[string]*yaml.Node
	wrong   []string
}

type cloudStep struct {
	module string
	request.Step
}

// steps are those of the modules in the order in which cloud-init has them.
func (x *cloudConfig) steps() []cloudStep {
	var steps []cloudStep
	add := func(module string, step request.Step) {
		step.Root = true
		steps = append(steps, cloudStep{module, step})
	}
	if n := x.modules["bootcmd"]; n != nil {
		add("bootcmd", x.commands("bootcmd", n))
	}
	if n := x.modules["write_files"]; n != nil {
		add("write_files", request.Step{Files: x.files(n)})
	}
	update, upgrade := x.truth("package_update"), x.truth("package_upgrade")
	var packages []string
	if n := x.modules["packages"]; n != nil {
		packages = x.packages(n)
	}
	if update || upgrade || len(packages) > 0 {
		add("packages", request.Step{Run: &request.Run{Args: append([]string{"/bin/sh", "-c", packageScript, "packages",
			strconv.FormatBool(update), strconv.FormatBool(upgrade)}, packages...)}})
	}
	if n := x.modules["runcmd"]; n != nil {
		add("runcmd", x.commands("runcmd", n))
	}
	return steps
}

// packageScript installs packages. Arguments: whether to update lists, whether
// to upgrade what there is, and the packages.
const packageScript = `set -e
update=$1 upgrade=$2
shift 2
if command -v apt-get >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	if [ "$update" = true ] || [ "$upgrade" = true ]; then apt-get update -q; fi
	if [ "$upgrade" = true ]; then apt-get upgrade -y -q; fi
	if [ $# -gt 0 ]; then apt-get install -y -q "$@" || { apt-get update -q && apt-get install -y -q "$@"; }; fi
elif command -v dnf >/dev/null; then
	if [ "$upgrade" = true ]; then dnf upgrade -y -q; fi
	if [ $# -gt 0 ]; then dnf install -y -q "$@"; fi
elif command -v apk >/dev/null; then
	if [ "$update" = true ]; then apk update; fi
	if [ "$upgrade" = true ]; then apk upgrade; fi
	if [ $# -gt 0 ]; then apk add "$@"; fi
else
	echo "the image has no package manager that is known here" >&2
	exit 1
fi`

func (x *cloudConfig) bad(format string, args ...any) {
	if len(x.wrong) < 10 {
		x.wrong = append(x.wrong, fmt.Sprintf(format, args...))
	}
}

func (x *cloudConfig) truth(module string) bool {
	n := x.modules[module]
	if n == nil {
		return false
	}
	var b bool
	if err := n.Decode(&b); err != nil {
		x.bad("%s is neither true nor false", module)
	}
	return b
}

// commands makes one script of commands, which are lines for a shell, or lists
// of a program and its arguments. As with cloud-init, one that fails does not
// keep the next from being run, but the step fails.
func (x *cloudConfig) commands(module string, n *yaml.Node) request.Step {
	var b strings.Builder
	b.WriteString("failed=0\n")
	if n.Kind != yaml.SequenceNode {
		x.bad("%s is no list", module)
	}
	for _, e := range n.Content {
		var line string
		switch e.Kind {
		case yaml.ScalarNode:
			line = "( " + e.Value + "\n)"
		case yaml.SequenceNode:
			var words []string
			for _, w := range e.Content {
				if w.Kind != yaml.ScalarNode {
					x.bad("a command of %s is a list of other than texts", module)
					continue
				}
				words = append(words, shellQuote(w.Value))
			}
			line = strings.Join(words, " ")
		default:
			x.bad("a command of %s is neither a text nor a list", module)
		}
		b.WriteString(line + " || failed=$?\n")
	}
	b.WriteString("exit $failed\n")
	return request.Step{Run: &request.Run{Command: b.String()}}
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (x *cloudConfig) packages(n *yaml.Node) []string {
	var list []string
	if n.Kind != yaml.SequenceNode {
		x.bad("packages is no list")
	}
	for _, e := range n.Content {
		name := e.Value
		if e.Kind == yaml.SequenceNode && len(e.Content) == 2 { // [name, version]
			name = e.Content[0].Value + "=" + e.Content[1].Value
		}
		if name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \n\t") {
			x.bad("a package %q", shorten(name))
			continue
		}
		list = append(list, name)
	}
	return list
}

func (x *cloudConfig) files(n *yaml.Node) []request.File {
	var list []request.File
	if n.Kind != yaml.SequenceNode {
		x.bad("write_files is no list")
	}
	for _, e := range n.Content {
		var f struct {
			Path        string    `yaml:"path"`
			Content     string    `yaml:"content"`
			Encoding    string    `yaml:"encoding"`
			Permissions yaml.Node `yaml:"permissions"`
			Owner       string    `yaml:"owner"`
			Append      bool      `yaml:"append"`
			Defer       bool      `yaml:"defer"`
		}
		if err := e.Decode(&f); err != nil {
			x.bad("a file of write_files: %v", err)
			continue
		}
		if !strings.HasPrefix(f.Path, "/") || strings.ContainsAny(f.Path, "\x00\n") {
			x.bad("a file of write_files has the path %q, which is not absolute", shorten(f.Path))
			continue
		}
		if f.Append || f.Owner != "" && f.Owner != "root:root" && f.Owner != "root" {
			x.bad("the file %s: append and owners other than root are not done here", shorten(f.Path))
			continue
		}
		mode := uint64(0o644)
		if f.Permissions.Value != "" {
			m, err := strconv.ParseUint(strings.TrimPrefix(f.Permissions.Value, "0o"), 8, 12)
			if err != nil {
				x.bad("the file %s has the permissions %q", shorten(f.Path), shorten(f.Permissions.Value))
				continue
			}
			mode = m
		}
		content, err := decodeContent(f.Content, f.Encoding)
		if err != nil {
			x.bad("the file %s: %v", shorten(f.Path), err)
			continue
		}
		list = append(list, request.File{Path: f.Path, Mode: uint32(mode), Content: content})
	}
	return list
}

// maxContent bounds what the content of a file expands to.
const maxContent = 4 << 20

func decodeContent(text, encoding string) ([]byte, error) {
	content := []byte(text)
	switch encoding {
	case "", "text/plain":
		return content, nil
	case "b64", "base64", "gz+b64", "gz+base64", "gzip+b64", "gzip+base64":
		var err error
		if content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err != nil {
			return nil, fmt.Errorf("its content is not base64: %w", err)
		}
	case "gz", "gzip":
	default:
		return nil, fmt.Errorf("the encoding %q is not known here", shorten(encoding))
	}
	if !strings.HasPrefix(encoding, "gz") {
		return content, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("its content is not gzip: %w", err)
	}
	content, err = io.ReadAll(io.LimitReader(z, maxContent+1))
	if err != nil {
		return nil, fmt.Errorf("its content is not gzip: %w", err)
	}
	if len(content) > maxContent {
		return nil, fmt.Errorf("its content is longer than %d bytes", maxContent)
	}
	return content, nil
}
