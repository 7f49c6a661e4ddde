package rspec

import (
	"strconv"

	"croft/capacity"
	"croft/request"
)

// croft makes an element of Croft's own namespace, without the attributes that
// are empty.
func croft(name string, attrs ...pair) fragment {
	f := fragment{name: "croft:" + name}
	f.attr("xmlns:croft", nsCroft)
	for _, a := range attrs {
		f.attr(a.key, a.value)
	}
	return f
}

func number(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

func truth(b bool) string {
	if !b {
		return ""
	}
	return "true"
}

// nodeWants writes what wants.go reads.
func nodeWants(n *request.Node) []fragment {
	var kids []fragment
	if n.Class != "" {
		kids = append(kids, fragment{name: "hardware_type", attrs: []pair{{"name", string(n.Class)}}})
	}
	if n.Parent != "" {
		kids = append(kids, fragment{name: "relation", attrs: []pair{{"type", "subnode_of"}, {"client_id", string(n.Parent)}}})
	}
	if n.Site != "" || n.Architecture != "" || n.Optional || n.Preemptible {
		kids = append(kids, croft("node", pair{"site", n.Site}, pair{"architecture", n.Architecture},
			pair{"optional", truth(n.Optional)}, pair{"preemptible", truth(n.Preemptible)}))
	}
	for _, x := range []struct {
		name string
		size capacity.Amount
	}{{"at_least", n.Capacity}, {"at_most", n.Most}} {
		if x.size != (capacity.Amount{}) {
			kids = append(kids, croft(x.name, pair{"cores", number(float64(x.size.Cores) / float64(capacity.Core))},
				pair{"memory", number(float64(x.size.Memory))}, pair{"disk", number(float64(x.size.Disk))}, pair{"gpus", number(float64(x.size.GPUs))}))
		}
	}
	for _, f := range n.Features {
		kids = append(kids, croft("feature", pair{"name", f.Name}, pair{"weight", strconv.FormatFloat(f.Weight, 'g', -1, 64)}, pair{"amount", number(f.Amount)}))
	}
	images := n.OtherImages
	if n.Image.System != (request.System{}) || n.SliverType == "" && !n.Image.IsZero() {
		images = append([]request.Image{n.Image}, images...)
	}
	for _, i := range images {
		s := i.System
		kids = append(kids, croft("image", pair{"name", i.Name}, pair{"url", i.URL}, pair{"os", s.OS}, pair{"distribution", s.Distribution},
			pair{"version", s.Version}, pair{"min_version", s.MinVersion}, pair{"max_version", s.MaxVersion}))
	}
	return kids
}

func (w *requestWriter) groupsAndClasses(r *request.Request) []fragment {
	var kids []fragment
	for _, g := range r.Groups {
		place := "together"
		if g.Apart {
			place = "apart"
		}
		f := croft("group", pair{"name", g.Name}, pair{"place", place}, pair{"by", string(g.By)}, pair{"weight", number(g.Weight)})
		for _, id := range g.Nodes {
			f.kids = append(f.kids, fragment{name: "croft:member", attrs: []pair{{"client_id", string(id)}}})
		}
		kids = append(kids, f)
	}
	for _, c := range r.Classes {
		f := fragment{name: "emulab:vclass"}
		f.attr("xmlns:emulab", nsEmulab)
		f.attr("name", string(c.Name))
		f.attr("weight", strconv.FormatFloat(c.Weight, 'g', -1, 64))
		for _, t := range c.Types {
			f.kids = append(f.kids, fragment{name: "emulab:physical_type", attrs: []pair{{"name", t}}})
		}
		kids = append(kids, f)
	}
	return kids
}

func linkWants(f fragment, l *request.Link) fragment {
	choice := func(c request.Choice) string {
		switch c {
		case request.Yes:
			return "true"
		case request.No:
			return "false"
		}
		return ""
	}
	x := croft("link", pair{"multiplexed", choice(l.Multiplexed)}, pair{"trivial", choice(l.Trivial)}, pair{"best_effort", truth(l.BestEffort)})
	if l.NoInterswitch {
		x.attr("interswitch", "false")
	}
	if l.VLAN != 0 && l.SharedVLAN == "" {
		x.attr("vlantag", strconv.Itoa(l.VLAN))
	}
	if len(x.attrs) > 1 {
		f.kids = append(f.kids, x)
	}
	return f
}
