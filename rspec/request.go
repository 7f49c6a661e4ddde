package rspec

import (
	"fmt"
	"strconv"
	"strings"

	"croft/languages"
	"croft/request"
)

// WriteRequest writes a request as a GENI 3 request RSpec, and says what of it
// an RSpec cannot hold.
func WriteRequest(r *request.Request) ([]byte, []languages.Problem) {
	w := &requestWriter{}
	root := fragment{name: "rspec"}
	ns := GENI3.Namespace()
	root.attr("xmlns", ns)
	root.attr("xmlns:xsi", nsXSI)
	root.attr("xsi:schemaLocation", ns+" "+ns+"/request.xsd")
	root.attr("type", "request")
	steps := map[request.ClientID][]*request.Step{}
	for i := range r.Steps {
		steps[r.Steps[i].Node] = append(steps[r.Steps[i].Node], &r.Steps[i])
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		root.kids = append(root.kids, w.node(n, steps[n.ID]))
	}
	for i := range r.Links {
		root.kids = append(root.kids, w.link(&r.Links[i]))
	}
	root.kids = append(root.kids, w.groupsAndClasses(r)...)
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>`)
	root.write(&b, "\n")
	b.WriteByte('\n')
	return []byte(b.String()), w.lost
}

type requestWriter struct {
	lost []languages.Problem
	told map[string]bool
}

// lose says that an RSpec has no place for something; once for each place.
func (w *requestWriter) lose(at request.Place, what string) {
	key := at.String() + what
	if w.told[key] {
		return
	}
	if w.told == nil {
		w.told = map[string]bool{}
	}
	w.told[key] = true
	w.lost = append(w.lost, languages.Problem{Place: at, What: "an RSpec cannot say " + what})
}

func (w *requestWriter) node(n *request.Node, steps []*request.Step) fragment {
	f := fragment{name: "node"}
	f.attr("client_id", string(n.ID))
	f.attr("component_manager_id", n.Manager.String())
	f.attr("component_id", n.Component.String())
	f.attr("component_name", n.ComponentName)
	if n.Exclusive != request.Open {
		f.attr("exclusive", strconv.FormatBool(n.Exclusive == request.Yes))
	}
	if image := n.Image.Name + n.Image.URL; n.SliverType != "" || image != "" {
		t := fragment{name: "sliver_type"}
		t.attr("name", string(n.SliverType))
		if image != "" {
			i := fragment{name: "disk_image"}
			i.attr("name", n.Image.Name)
			i.attr("url", n.Image.URL)
			t.kids = append(t.kids, i)
		}
		if n.SliverType != "" { // otherwise it is written beside
			f.kids = append(f.kids, t)
		}
	}
	for _, h := range n.HardwareTypes {
		t := fragment{name: "hardware_type"}
		t.attr("name", h)
		f.kids = append(f.kids, t)
	}
	f.kids = append(f.kids, nodeWants(n)...)
	for i := range n.Interfaces {
		f.kids = append(f.kids, interfaceRequest(&n.Interfaces[i]))
	}
	if services := w.services(steps); len(services) > 0 {
		f.kids = append(f.kids, fragment{name: "services", kids: services})
	}
	for _, x := range []struct {
		wanted bool
		what   string
	}{
		{len(n.Users) > 0, "which accounts a node has: give the users with the call"},
		{len(n.Env) > 0, "the environment of what runs in a node"},
		{len(n.Ports) > 0, "which ports are reached from outside"},
		{len(n.Aliases) > 0, "further names of a node"},
	} {
		if x.wanted {
			w.lose(n.Place, x.what)
		}
	}
	return f
}

func interfaceRequest(i *request.Interface) fragment {
	f := fragment{name: "interface"}
	f.attr("client_id", string(i.ID))
	f.attr("component_id", i.Component.String())
	for _, a := range i.Addresses {
		ip := fragment{name: "ip"}
		ip.attr("address", a.Addr().String())
		ip.attr("netmask", netmask(a))
		kind := "ipv4"
		if a.Addr().Is6() {
			kind = "ipv6"
		}
		ip.attr("type", kind)
		f.kids = append(f.kids, ip)
	}
	return f
}

// services are the steps of a node in their order. An RSpec has archives and
// commands only; what a step waits for on other nodes it cannot say.
func (w *requestWriter) services(steps []*request.Step) []fragment {
	var list []fragment
	own := map[request.StepName]bool{}
	for _, s := range steps {
		own[s.Name] = true
	}
	for _, s := range steps {
		for _, name := range s.After {
			if !own[name] {
				w.lose(s.Place, "that a step waits for one of another node")
				break
			}
		}
		switch {
		case s.Install != nil && s.Install.Content == nil:
			f := fragment{name: "install"}
			f.attr("install_path", s.Install.Path)
			f.attr("url", s.Install.URL)
			list = append(list, f)
			continue
		case s.Install != nil:
			w.lose(s.Place, "what an archive holds")
			continue
		}
		command, ok := w.command(s)
		if !ok {
			continue
		}
		f := fragment{name: "execute"}
		f.attr("shell", "/bin/sh")
		f.attr("command", command)
		list = append(list, f)
	}
	return list
}

// command is one command that does what a step does.
func (w *requestWriter) command(s *request.Step) (string, bool) {
	var b strings.Builder
	for _, f := range s.Files {
		fmt.Fprintf(&b, "mkdir -p %s; cat > %s <<'CROFT-END'\n%s\nCROFT-END\nchmod %o %s\n",
			shellWord(f.Path[:strings.LastIndexByte(f.Path, '/')+1]), shellWord(f.Path), strings.TrimSuffix(string(f.Content), "\n"), f.Mode, shellWord(f.Path))
	}
	run := s.Run
	if s.Service != nil {
		run = &s.Service.Run
		w.lose(s.Place, "that a command is a service")
	}
	for _, v := range s.Env {
		text := ""
		for _, p := range v.Value {
			if p.Attribute != nil || p.Output != nil {
				w.lose(s.Place, "what is known only when nodes are there")
			}
			text += p.Text
		}
		fmt.Fprintf(&b, "export %s=%s\n", v.Name, shellWord(text))
	}
	if run != nil {
		if run.Dir != "" {
			fmt.Fprintf(&b, "cd %s\n", shellWord(run.Dir))
		}
		command := run.Command
		if len(run.Args) > 0 {
			var words []string
			for _, a := range run.Args {
				words = append(words, shellWord(a))
			}
			command = strings.Join(words, " ")
		} else if run.Shell != "" {
			command = run.Shell + " -c " + shellWord(command)
		}
		b.WriteString(command)
	}
	text := b.String()
	if s.Root {
		text = "sudo /bin/sh -c " + shellWord(text)
	}
	return text, text != ""
}

func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (w *requestWriter) link(l *request.Link) fragment {
	f := fragment{name: "link"}
	f.attr("client_id", string(l.ID))
	if !l.Manager.IsZero() {
		m := fragment{name: "component_manager"}
		m.attr("name", l.Manager.String())
		f.kids = append(f.kids, m)
	}
	for _, e := range l.Ends {
		ref := fragment{name: "interface_ref"}
		ref.attr("client_id", string(e.Interface))
		f.kids = append(f.kids, ref)
	}
	for _, p := range l.Properties {
		x := fragment{name: "property"}
		x.attr("source_id", string(p.From))
		x.attr("dest_id", string(p.To))
		if p.Capacity > 0 {
			x.attr("capacity", strconv.FormatInt(int64(p.Capacity), 10))
		}
		if p.LatencyMs > 0 {
			x.attr("latency", strconv.FormatFloat(p.LatencyMs, 'g', -1, 64))
		}
		if p.Loss > 0 {
			x.attr("packet_loss", strconv.FormatFloat(p.Loss, 'g', -1, 64))
		}
		if p.JitterMs > 0 {
			x.kids = append(x.kids, croft("jitter", pair{"ms", strconv.FormatFloat(p.JitterMs, 'g', -1, 64)}))
		}
		f.kids = append(f.kids, x)
	}
	if l.Type != "" {
		t := fragment{name: "link_type"}
		t.attr("name", string(l.Type))
		f.kids = append(f.kids, t)
	}
	if l.SharedVLAN != "" {
		v := fragment{name: "vlan:link_shared_vlan"}
		v.attr("xmlns:vlan", nsSharedVLAN)
		v.attr("name", l.SharedVLAN)
		if l.VLAN != 0 {
			v.attr("vlantag", strconv.Itoa(l.VLAN))
		}
		f.kids = append(f.kids, v)
	}
	return linkWants(f, l)
}
