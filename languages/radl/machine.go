package radl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"croft/request"
)

// Merge puts documents of one infrastructure together, as the Infrastructure
// Manager shows them: the last definition of every name, the contextualize of
// all, and the deploys.
func Merge(documents []*Document) *Document {
	type key struct {
		class Class
		name  string
	}
	last := map[key]int{}
	var kept []Item
	put := func(k key, item Item) {
		if i, ok := last[k]; ok {
			kept[i] = item
			return
		}
		last[k] = len(kept)
		kept = append(kept, item)
	}
	var deploys []Item
	var contexts *Contextualize
	for _, d := range documents {
		for _, item := range d.Items {
			switch item := item.(type) {
			case *Aspect:
				if !item.Reference {
					put(key{item.Class, item.Name}, item)
				}
			case *Configure:
				if !item.Reference {
					put(key{"configure", item.Name}, item)
				}
			case *Contextualize:
				if contexts == nil {
					contexts = &Contextualize{}
				}
				contexts.add(item)
			case *Deploy:
				deploys = append(deploys, item)
			}
		}
	}
	if contexts != nil {
		kept = append(kept, contexts)
	}
	return &Document{Items: append(kept, deploys...)}
}

// add puts another contextualize into one.
func (c *Contextualize) add(other *Contextualize) {
	if other.Limit != nil && (c.Limit == nil || other.Limit.Num > c.Limit.Num) {
		c.Limit = other.Limit
	}
	c.Options = append(c.Options, other.Options...)
	for _, item := range other.Items {
		k := slices.IndexFunc(c.Items, func(i ContextItem) bool { return i.System == item.System && i.Configure == item.Configure })
		if k >= 0 {
			c.Items[k] = item
		} else {
			c.Items = append(c.Items, item)
		}
	}
}

// Facts are what is known of a machine once it is there.
type Facts struct {
	Node      request.ClientID
	Features  []Feature      // such as its state; see Text and Whole
	Addresses map[int]string // of its interfaces, by their numbers
	// Login is where it is logged in to; no host for nowhere.
	LoginHost string
	LoginPort int
	// Ports are further ones that are reached at the login host.
	Ports []Reached
}

// Reached is a port of a machine and the number that it has outside.
type Reached struct {
	Public, Local int
	Protocol      string
}

// TextFeature is the feature that a name has a text.
func TextFeature(name, text string) Feature {
	return Feature{Name: name, Value: Value{Kind: String, Text: text}}
}

// WholeFeature is the feature that a name has a number.
func WholeFeature(name string, n int64) Feature {
	return Feature{Name: name, Value: Value{Kind: Number, Text: strconv.FormatInt(n, 10), Num: float64(n), Whole: true}}
}

// NumberFeature is the feature that a name has a number that need not be whole.
func NumberFeature(name string, n float64) Feature {
	return Feature{Name: name, Value: Value{Kind: Number, Text: decimal(n), Num: n}}
}

// accessNetwork is the network that a machine is shown on that is on no public
// one: it, too, is reached from outside, by its login.
const accessNetwork = "croft_access"

// Machine is the document that tells about one machine: its networks, and its
// system with what is known in place of what was asked for. documents are
// those of its infrastructure, merged.
func (d *Document) Machine(f Facts) *Document {
	name, number := systemOf(f.Node)
	networks := map[string]*Aspect{}
	var asked *Aspect
	for _, item := range d.Items {
		if a, ok := item.(*Aspect); ok && a.Class == Network {
			networks[a.Name] = a
		} else if ok && a.Class == System && a.Name == safeName(name) {
			asked = a
		}
	}
	system := &Aspect{Class: System, Name: name}
	if asked == nil {
		system.Name = safeName(string(f.Node))
		asked = system
	}
	given := map[string]bool{}
	for i := range f.Features {
		given[f.Features[i].Name] = true
	}
	var shown []Item
	seen := map[string]bool{}
	public := false
	interfaces := 0
	for _, g := range asked.Features {
		prefix, rest, _ := strings.Cut(g.Name, ".")
		index, suffix, _ := strings.Cut(rest, ".")
		n, _ := strconv.Atoi(index)
		switch {
		case g.Op == Soft, given[g.Name], strings.HasPrefix(g.Name, "disk.0.os.credentials."):
			continue
		case prefix == "net_interface":
			interfaces = max(interfaces, n+1)
			if suffix == "ip" {
				continue
			}
			if suffix == "dns_name" {
				g = TextFeature(g.Name, strings.ReplaceAll(g.Value.Text, "#N#", strconv.Itoa(number)))
			}
		}
		system.Features = append(system.Features, g)
		if suffix != "connection" || prefix != "net_interface" {
			continue
		}
		address := f.Addresses[n]
		network := networks[g.Value.Text]
		if network != nil && isPublic(network) && f.LoginHost != "" && !public {
			public = true
			address = f.LoginHost
			network = publicNetwork(network, f)
		}
		if network != nil && !seen[network.Name] {
			seen[network.Name] = true
			shown = append(shown, network)
		}
		if address != "" {
			system.Features = append(system.Features, TextFeature(fmt.Sprintf("net_interface.%d.ip", n), address))
		}
	}
	if !public && f.LoginHost != "" {
		prefix := fmt.Sprintf("net_interface.%d.", interfaces)
		shown = append(shown, publicNetwork(&Aspect{Class: Network, Name: accessNetwork}, f))
		system.Features = append(system.Features, TextFeature(prefix+"connection", accessNetwork), TextFeature(prefix+"ip", f.LoginHost))
	}
	system.Features = append(system.Features, f.Features...)
	return &Document{Items: append(shown, system)}
}

// Value is the value of a feature of the document's system, as a text; not, if
// it has none of that name.
func (d *Document) Value(name string) (string, bool) {
	for _, item := range d.Items {
		a, ok := item.(*Aspect)
		if !ok || a.Class != System {
			continue
		}
		for i := range a.Features {
			if f := &a.Features[i]; f.Name == name {
				switch f.Value.Kind {
				case Number:
					return decimal(f.Value.Amount()), true
				case List:
					return strings.Join(f.Value.List, ","), true
				default:
					return f.Value.Text, true
				}
			}
		}
	}
	return "", false
}

func isPublic(network *Aspect) bool {
	for i := range network.Features {
		if f := &network.Features[i]; f.Name == "outbound" {
			return strings.EqualFold(f.Value.Text, "yes")
		}
	}
	return false
}

// publicNetwork is a network with the ports at which a machine is reached.
func publicNetwork(network *Aspect, f Facts) *Aspect {
	ports := []string{fmt.Sprintf("%d/tcp-22/tcp", f.LoginPort)}
	for _, p := range f.Ports {
		ports = append(ports, fmt.Sprintf("%d/%s-%d/%s", p.Public, p.Protocol, p.Local, p.Protocol))
	}
	shown := &Aspect{Class: Network, Name: network.Name, Features: []Feature{
		TextFeature("outbound", "yes"), TextFeature("outports", strings.Join(ports, ",")),
	}}
	for _, g := range network.Features {
		if g.Name != "outbound" && g.Name != "outports" {
			shown.Features = append(shown.Features, g)
		}
	}
	return shown
}

// systemOf is the system that a node is a machine of, and its number.
func systemOf(node request.ClientID) (string, int) {
	name := string(node)
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if n, ok := index(name[i+1:]); ok {
			return name[:i], n
		}
	}
	return name, 0
}

// safeName makes a name of the text form of any.
func safeName(s string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && wordBytes[r] {
			return r
		}
		return '_'
	}, s)
	if !isName(clean) {
		clean = "_" + clean
	}
	return clean
}

// Unlike says what a document defines that another one does not have like
// that; "" if the other has it all.
func (d *Document) Unlike(other *Document) string {
	for _, item := range d.Items {
		switch item := item.(type) {
		case *Aspect:
			if item.Class != System || item.Reference {
				continue
			}
			for i := range item.Features {
				f := &item.Features[i]
				if f.Op == Soft || f.Value.Kind == Features {
					continue
				}
				is, ok := other.Value(f.Name)
				want, _ := (&Document{Items: []Item{&Aspect{Class: System, Features: []Feature{*f}}}}).Value(f.Name)
				if f.Value.Kind == Number && ok {
					n, err := strconv.ParseFloat(is, 64)
					if _, within := (bounds{low: n, high: n}).within(f); err == nil && within {
						continue
					}
				}
				if !ok || is != want {
					return fmt.Sprintf("%s is %s", f.Name, is)
				}
			}
		case *Configure:
			if item.Reference || item.Empty {
				continue
			}
			same := slices.ContainsFunc(other.Items, func(o Item) bool {
				r, ok := o.(*Configure)
				return ok && r.Name == item.Name && strings.TrimSpace(r.Recipe) == strings.TrimSpace(item.Recipe)
			})
			if !same {
				return "configure " + item.Name
			}
		case *Deploy:
			return "deploy " + item.System
		}
	}
	return ""
}
