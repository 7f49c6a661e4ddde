package rspec

import (
	"fmt"
	"strings"

	"github.com/beevik/etree"

	"croft/request"
)

// startup compiles the services of a node of ours into steps: archives first,
// then commands, as Emulab does it, each in the order of the document.
func (c *compiler) startup(e *etree.Element, node request.ClientID) {
	for _, services := range c.childrenOf(e, "services") {
		for _, i := range c.childrenOf(services, "install") {
			c.install(i, node)
		}
	}
	for _, services := range c.childrenOf(e, "services") {
		for _, x := range c.childrenOf(services, "execute") {
			c.execute(x, node)
		}
	}
}

func (c *compiler) install(e *etree.Element, node request.ClientID) {
	i := request.Install{URL: strings.TrimSpace(attr(e, "url")), Path: attr(e, "install_path")}
	switch {
	case i.URL == "":
		c.warn(e, "install without a url is passed over", "")
		return
	case !strings.HasPrefix(i.Path, "/") && i.Path != "~" && !strings.HasPrefix(i.Path, "~/"):
		c.fail(e, fmt.Sprintf("install_path %q", i.Path), "it is an absolute path, such as /local, or one below ~")
		return
	}
	scheme, _, ok := strings.Cut(i.URL, ":")
	switch scheme = strings.ToLower(scheme); {
	case strings.HasPrefix(i.URL, "/"):
		i.URL = "file://" + i.URL // as Emulab takes it
	case !ok || scheme != "http" && scheme != "https" && scheme != "file":
		c.fail(e, fmt.Sprintf("install url %q", i.URL), "it begins with http:, https: or file:")
		return
	}
	c.step(e, node, "install", request.Step{Install: &i, Root: !strings.HasPrefix(i.Path, "~")})
}

func (c *compiler) execute(e *etree.Element, node request.ClientID) {
	r := request.Run{Command: attr(e, "command"), Shell: attr(e, "shell")}
	if strings.TrimSpace(r.Command) == "" {
		c.warn(e, "execute without a command is passed over", "")
		return
	}
	c.step(e, node, "execute", request.Step{Run: &r})
}

// step adds a step, which it names after its node: "node0-execute-2".
func (c *compiler) step(e *etree.Element, node request.ClientID, what string, s request.Step) {
	if c.steps == nil {
		c.steps = map[string]int{}
	}
	base := stepNode(node) + "-" + what
	c.steps[base]++
	s.Name = request.StepName(fmt.Sprintf("%s-%d", base, c.steps[base]))
	s.Node, s.Place = node, c.placeOf(e)
	c.request.Steps = append(c.request.Steps, s)
}

// stepNode makes a part of a step's name out of a client_id.
func stepNode(id request.ClientID) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
			return r
		}
		return '_'
	}, string(id))
	const most = 150 // of the 200 that the name of a step may have
	name = name[:min(len(name), most)]
	if name == "" || name[0] == '.' || name[0] == '-' {
		name = "_" + name
	}
	return name
}
