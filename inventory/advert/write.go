package advert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"croft/capacity"
	"croft/urn"
)

// write writes the inventory as an operator would: ranges instead of lists,
// and what hosts have in common said once.
func (t *testbed) write(source string) []byte {
	w := &writer{}
	w.line("# Imported from the advertisement %s.", comment(source))
	w.line("# What there is to give on each host (cores, memory) is not in it: add it if you know.")
	w.line("")
	w.line("authority: %s", quoted(string(t.authority)))
	if !t.manager.IsZero() {
		w.line("manager: %s", quoted(t.manager.String()))
	}
	if len(t.aliases) > 0 {
		w.line("manager_aliases:")
		for _, a := range t.aliases {
			w.line("  - %s", quoted(a.String()))
		}
	}
	t.writeKinds(w)
	t.writeHosts(w)
	t.writeWiring(w)
	if len(t.vlans) > 0 {
		w.line("\nshared_vlans:")
		for _, v := range t.vlans {
			w.entry(pair{"name", quoted(v.Name)}, pair{"restricted", onlyIf(v.Restricted, "true")})
		}
	}
	if len(t.external) > 0 {
		w.line("\nexternal_refs:")
		for _, e := range t.external {
			w.entry(pair{"interface", quoted(e.Interface.String())}, pair{"manager", quoted(e.Manager.String())})
		}
	}
	return w.out.Bytes()
}

// writer writes YAML in block style.
type writer struct{ out bytes.Buffer }

// pair is a field; it is left out if its text is empty.
type pair struct{ name, text string }

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.out, format+"\n", args...)
}

// entry writes an item of a list of mappings.
func (w *writer) entry(fields ...pair) {
	lead := "  - "
	for _, f := range fields {
		if f.text == "" {
			continue
		}
		w.line("%s%s: %s", lead, f.name, f.text)
		lead = "    "
	}
}

func onlyIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// comment makes a text fit for a comment.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' || r == '\ufffd' {
			return '?'
		}
		return r
	}, s)
}

// bare texts need no quotes in YAML, wherever they stand.
var bare = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./@-]*$`)

// quoted writes a text so that YAML reads it as that text; "" for "".
func quoted(s string) string {
	switch strings.ToLower(s) {
	case "":
		return ""
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return strconv.Quote(s)
	}
	if bare.MatchString(s) {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return `""`
	}
	return strings.TrimSpace(b.String())
}

// quotedList writes texts as a list, or the only one as itself; "" for none.
func quotedList(texts []string) string {
	switch len(texts) {
	case 0:
		return ""
	case 1:
		return quoted(texts[0])
	}
	all := make([]string, len(texts))
	for i, s := range texts {
		all[i] = quoted(s)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func urnText(id urn.URN) string { return quoted(id.String()) }

func (t *testbed) writeKinds(w *writer) {
	if len(t.sites) > 0 {
		w.line("\nsites:")
		for _, s := range t.sites {
			w.entry(pair{"name", quoted(s.name)}, pair{"country", quoted(s.country)}, pair{"latitude", s.latitude}, pair{"longitude", s.longitude})
		}
	}
	if len(t.images) > 0 {
		w.line("\nimages:")
		for _, i := range t.images {
			w.entry(pair{"name", quoted(i.name)}, pair{"urn", urnText(i.urn)}, pair{"description", quoted(i.description)},
				pair{"os", quoted(i.os)}, pair{"version", quoted(i.version)}, pair{"url", quoted(i.url)})
		}
	}
	w.line("\nsliver_types:")
	for _, s := range t.types {
		w.entry(pair{"name", quoted(s.name)}, pair{"driver", quoted(t.options.Driver)},
			pair{"whole_host", onlyIf(s.whole, "true")}, pair{"shaping", onlyIf(t.options.Driver == "simulated", "true")}, pair{"images", quotedList(s.images)})
	}
}

// writeHosts writes hosts that are alike as one range, and what is alike
// between ranges as an anchor.
func (t *testbed) writeHosts(w *writer) {
	groups := map[string][]*host{}
	var order []string
	for _, h := range t.hosts {
		key := t.offer(h) + interfaceShape(h)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], h)
	}
	w.line("\nhosts:")
	for i, key := range order {
		var plain []string
		var odd []*host // those with URNs of their own
		for _, h := range groups[key] {
			if h.urn.IsZero() && !slices.ContainsFunc(h.interfaces, func(f iface) bool { return !f.urn.IsZero() }) {
				plain = append(plain, h.name)
			} else {
				odd = append(odd, h)
			}
		}
		patterns := compress(plain)
		several := len(patterns)+len(odd) > 1
		first := true
		begin := func(name string) {
			switch {
			case !first:
				w.line("  - <<: *offer%d", i+1)
				w.line("    name: %s", quoted(name))
			case several:
				w.line("  - &offer%d", i+1)
				w.line("    name: %s", quoted(name))
			default:
				w.line("  - name: %s", quoted(name))
			}
		}
		for _, p := range patterns {
			if begin(p); first {
				w.out.WriteString(t.offer(groups[key][0]))
				writeInterfaces(w, groups[key][0], false)
			}
			first = false
		}
		for _, h := range odd {
			begin(h.name)
			if !h.urn.IsZero() {
				w.line("    urn: %s", urnText(h.urn))
			}
			if first {
				w.out.WriteString(t.offer(h))
			}
			first = false
			writeInterfaces(w, h, true)
		}
	}
}

// interfaceShape is equal for hosts whose interfaces are alike.
func interfaceShape(h *host) string {
	var s strings.Builder
	for _, f := range h.interfaces {
		fmt.Fprintf(&s, " %s/%d/%v", f.name, f.speed, f.control)
	}
	return s.String()
}

// offer writes all fields of a host but its name, URNs and interfaces, and is
// equal for hosts that have these alike.
func (t *testbed) offer(h *host) string {
	w := &writer{}
	field := func(name, text string) {
		if text != "" {
			w.line("    %s: %s", name, text)
		}
	}
	if len(t.sites) > 1 {
		field("site", quoted(h.site))
	}
	field("hardware_types", quotedList(h.hardware))
	field("sliver_types", quotedList(h.types))
	if len(h.images) < t.offered(h) {
		field("images", quotedList(h.images))
	}
	field("exclusive", strconv.FormatBool(h.exclusive))
	if h.most > 0 {
		field("max_slivers", strconv.Itoa(h.most))
	}
	field("out_of_service", quoted(h.out))
	if len(h.properties) > 0 {
		w.line("    properties:")
		for _, name := range slices.Sorted(maps.Keys(h.properties)) {
			w.line("      %s: %s", quoted(name), quoted(h.properties[name]))
		}
	}
	return w.out.String()
}

// offered counts the images that a host's types have.
func (t *testbed) offered(h *host) int {
	all := map[string]bool{}
	for _, name := range h.types {
		for _, i := range t.typeBy[name].images {
			all[i] = true
		}
	}
	return len(all)
}

// writeInterfaces writes the interfaces of a host, or of all hosts of a range.
func writeInterfaces(w *writer, h *host, urns bool) {
	if len(h.interfaces) == 0 {
		return
	}
	w.line("    interfaces:")
	type alike struct {
		speed   capacity.Kbps
		control bool
	}
	done := map[int]bool{}
	for i, f := range h.interfaces {
		if done[i] {
			continue
		}
		names := []string{f.name}
		if !urns || f.urn.IsZero() {
			for j := i + 1; j < len(h.interfaces); j++ {
				other := h.interfaces[j]
				if (alike{other.speed, other.control} == alike{f.speed, f.control}) && (!urns || other.urn.IsZero()) {
					names = append(names, other.name)
					done[j] = true
				}
			}
		}
		for _, p := range compress(names) {
			fields := []string{"name: " + quoted(p)}
			if urns && !f.urn.IsZero() {
				fields = append(fields, "urn: "+quoted(f.urn.String()))
			}
			if f.speed > 0 {
				fields = append(fields, "speed: "+speedText(f.speed))
			}
			if f.control {
				fields = append(fields, "role: control")
			}
			w.line("      - {%s}", strings.Join(fields, ", "))
		}
	}
}

func speedText(k capacity.Kbps) string {
	switch {
	case k%1_000_000 == 0:
		return fmt.Sprintf("%d Gbps", k/1_000_000)
	case k%1000 == 0:
		return fmt.Sprintf("%d Mbps", k/1000)
	}
	return fmt.Sprintf("%d kbps", k)
}

func (t *testbed) writeWiring(w *writer) {
	if len(t.switches) > 0 {
		w.line("\nswitches:")
		for _, s := range t.switches {
			site := ""
			if len(t.sites) > 1 {
				site = quoted(s.site)
			}
			w.entry(pair{"name", quoted(s.name)}, pair{"urn", urnText(s.urn)}, pair{"site", site}, pair{"hardware_types", quotedList(s.hardware)})
		}
	}
	if len(t.trunks) > 0 {
		w.line("\ntrunks:")
		names := map[string]int{}
		for _, k := range t.trunks {
			one, _, _ := strings.Cut(k.ends[0], ":")
			other, _, _ := strings.Cut(k.ends[1], ":")
			name := ""
			if names[one+"-"+other]++; names[one+"-"+other] > 1 {
				name = fmt.Sprintf("%s-%s-%d", one, other, names[one+"-"+other])
			}
			speed := ""
			if k.capacity > 0 {
				speed = speedText(k.capacity)
			}
			w.entry(pair{"between", fmt.Sprintf("[%s, %s]", quoted(k.ends[0]), quoted(k.ends[1]))}, pair{"name", quoted(name)}, pair{"capacity", speed})
		}
	}
	if len(t.cables) > 0 {
		w.line("\ncables:")
		t.writeCables(w)
	}
}

// writeCables writes cables to unnamed ports as rules, others one by one.
func (t *testbed) writeCables(w *writer) {
	type bundle struct{ iface, to string }
	hosts := map[bundle][]string{}
	var order []bundle
	for _, c := range t.cables {
		if c.rest || c.port != "" {
			continue
		}
		b := bundle{c.iface, c.to}
		if hosts[b] == nil {
			order = append(order, b)
		}
		hosts[b] = append(hosts[b], c.host.name)
	}
	// Interfaces of the same hosts that lead to one switch go together.
	done := map[bundle]bool{}
	for i, b := range order {
		if done[b] {
			continue
		}
		names := []string{b.iface}
		for _, other := range order[i+1:] {
			if !done[other] && other.to == b.to && slices.Equal(hosts[other], hosts[b]) {
				done[other] = true
				names = append(names, other.iface)
			}
		}
		for _, pattern := range compress(hosts[b]) {
			for _, interfaces := range compress(names) {
				w.line("  - {hosts: %s, interfaces: %s, switch: %s}", quoted(pattern), quoted(interfaces), quoted(b.to))
			}
		}
	}
	for _, c := range t.cables {
		if !c.rest && c.port == "" {
			continue
		}
		one, other := "", c.to
		if c.host != nil {
			one = c.host.name + ":" + c.iface
			if !c.rest {
				other += ":" + c.port
			}
		} else {
			one = c.port
		}
		w.line("  - ends: [%s, %s]", quoted(one), quoted(other))
		if c.host == nil && c.capacity > 0 {
			w.line("    capacity: %s", speedText(c.capacity))
		}
	}
}
