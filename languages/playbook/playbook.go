// Package playbook has what languages share that configure nodes with Ansible:
// a playbook runs in the node that it is for, as root, and reaches no other.
package playbook

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Policy is what becomes of playbooks.
type Policy string

// The ways with playbooks.
const (
	OfImage   Policy = "image"   // nodes run them with the Ansible of their image; so does ""
	Installed Policy = "install" // nodes without Ansible install it first, and the roles that are asked for
	Refused   Policy = "refuse"
)

// MaxText bounds the texts that are read as YAML, in bytes.
const MaxText = 1 << 20

// Prepare returns the command that sees to it that a node has Ansible, and the
// roles.
func Prepare(p Policy, roles []string) []string {
	return append([]string{"/bin/sh", "-c", prepareScript, "ansible", strconv.FormatBool(p == Installed)}, roles...)
}

// Arguments: whether Ansible may be installed, and roles to install.
const prepareScript = `install=$1
shift
if ! command -v ansible-playbook >/dev/null; then
	if [ "$install" != true ]; then
		echo "the image of this node has no ansible-playbook, which its recipes need" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get install -y -q --no-install-recommends ansible-core ||
		{ apt-get update -q && apt-get install -y -q --no-install-recommends ansible-core; } ||
		dnf install -y -q ansible-core || apk add ansible-core; } && command -v ansible-playbook >/dev/null || {
		echo "ansible-playbook could not be installed in this node" >&2
		exit 1
	}
fi
for role in "$@"; do
	ansible-galaxy install "$role" || exit
done`

// Host is the line of Ansible's inventory for the node in which a playbook
// runs.
func Host(name string) string {
	return name + " ansible_connection=local ansible_python_interpreter=auto_silent\n"
}

// Local makes a playbook of a text: plays that name no hosts are for those of
// the inventory, and those for other hosts are refused. The text stays as it is
// otherwise. What says why it is none.
func Local(text string) (book []byte, what string) {
	root, err := Parse(text)
	if err != nil || root == nil || root.Kind != yaml.SequenceNode {
		return nil, "it is no playbook"
	}
	lines := strings.SplitAfter(text, "\n")
	added := map[int]bool{}
	// From the end, so that what is put in moves nothing that is still to come.
	for k := len(root.Content) - 1; k >= 0; k-- {
		play := root.Content[k]
		if play.Kind != yaml.MappingNode || len(play.Content) == 0 {
			return nil, fmt.Sprintf("line %d of it is no play", play.Line)
		}
		var hosts, imports *yaml.Node
		for i := 0; i+1 < len(play.Content); i += 2 {
			switch play.Content[i].Value {
			case "hosts":
				hosts = play.Content[i+1]
			case "include", "import_playbook", "ansible.builtin.import_playbook":
				imports = play.Content[i]
			}
		}
		if imports != nil {
			continue
		}
		if hosts != nil {
			if v := hosts.Value; hosts.Kind != yaml.ScalarNode || v != "all" && v != "localhost" && v != "127.0.0.1" {
				return nil, fmt.Sprintf("line %d of it is a play for other hosts: recipes act on the node that they run in", hosts.Line)
			}
			continue
		}
		first := play.Content[0]
		if first.Line < 1 || first.Line > len(lines) || first.Column < 1 {
			return nil, "it is no playbook"
		}
		added[k] = true
		line := lines[first.Line-1]
		at := byteColumn(line, first.Column)
		if play.Style&yaml.FlowStyle != 0 {
			lines[first.Line-1] = line[:at] + "hosts: all, " + line[at:]
			continue
		}
		lines[first.Line-1] = line[:at] + "hosts: all\n" + strings.Repeat(" ", first.Column-1) + line[at:]
	}
	made := strings.Join(lines, "")
	if len(added) > 0 && !hosted(made, root, added) {
		return nil, "it is no playbook that hosts can be put into: give each play its hosts"
	}
	return []byte(made), ""
}

// hosted reports whether a playbook is another one with hosts in some of its
// plays: YAML has more ways to write a map than those that are met in practice.
func hosted(text string, before *yaml.Node, added map[int]bool) bool {
	root, err := Parse(text)
	if err != nil || root == nil || len(root.Content) != len(before.Content) {
		return false
	}
	for i, play := range root.Content {
		want := len(before.Content[i].Content)
		if added[i] {
			want += 2
		}
		if play.Kind != yaml.MappingNode || len(play.Content) != want || added[i] && play.Content[0].Value != "hosts" {
			return false
		}
	}
	return true
}

// byteColumn is the offset of a column, which counts characters.
func byteColumn(line string, column int) int {
	n := 1
	for i := range line {
		if n == column {
			return i
		}
		n++
	}
	return len(line)
}

// Error says why a text is not YAML.
type Error struct {
	What string
	Line int // from 1
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Parse reads a text of one YAML document. It gives nil if the text is empty;
// errors are *Error.
func Parse(text string) (*yaml.Node, error) {
	if len(text) > MaxText {
		return nil, &Error{fmt.Sprintf("it is longer than %d bytes", MaxText), 1}
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	var node, second yaml.Node
	err := d.Decode(&node)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if err = d.Decode(&second); err == nil {
			return nil, &Error{"it is more than one document", second.Line}
		}
	}
	if !errors.Is(err, io.EOF) {
		line := 1
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
		return nil, &Error{yamlLine.ReplaceAllString(err.Error(), ""), line}
	}
	if len(node.Content) == 0 {
		return nil, nil
	}
	return node.Content[0], nil
}
