package inventory

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"croft/capacity"
	"croft/request"
	"croft/urn"
)

// Bounds of what ranges may add up to.
const (
	maxHosts      = 100_000
	maxInterfaces = 1_000_000
	maxLinks      = 1_000_000
)

// builder makes a snapshot of what was declared and reports what does not fit
// together.
type builder struct {
	*problems
	decl     fileDecl
	snapshot *Snapshot

	sites      map[string]bool
	images     map[string]urn.URN // by short name and by canonical URN
	imageNames []string
	types      map[request.SliverType]*SliverType
	typeNames  []string
	templates  map[string]*placed[hardwareTypeDecl]
	nodes      map[string]node // hosts and switches by name
	nodeNames  []string
	ids        map[urn.URN]string // what has that canonical URN already
	interfaces int
	places     map[string]place // of hosts by name, for advice
}

// place is where something stands in the file.
type place struct {
	at   position
	path string
}

// node is a host or a switch.
type node struct {
	isSwitch bool
	index    int // in Hosts or Switches
}

func (b *builder) all() {
	b.ids = map[urn.URN]string{}
	b.authority()
	b.buildSites()
	b.buildImages()
	b.buildTypes()
	b.buildHardwareTypes()
	b.nodes = map[string]node{}
	b.buildHosts()
	b.buildParents()
	b.buildSwitches()
	b.buildLinks()
	b.buildFeatures()
	b.buildPolicies()
	b.buildRest()
}

func (b *builder) authority() {
	b.snapshot.Authority = urn.Authority(b.decl.authority.value.text)
	own := func(name string) urn.URN {
		return urn.URN{Authority: b.snapshot.Authority, Type: urn.AuthorityType, Name: name}
	}
	b.snapshot.Manager = own("cm")
	if m := b.decl.manager; m.valid {
		if !strings.EqualFold(string(m.value.Type), string(urn.AuthorityType)) {
			b.add(m.at, m.path, fmt.Sprintf("a component manager is of type authority, got %s", m.value.Type),
				own("cm").String())
		}
		b.snapshot.Manager = m.value
	}
	for _, name := range []string{"cm", "am"} {
		alias := b.snapshot.Manager
		alias.Name = name
		if !alias.Equal(b.snapshot.Manager) {
			b.snapshot.Aliases = append(b.snapshot.Aliases, alias)
		}
	}
	for _, alias := range b.decl.aliases.value {
		known := func(u urn.URN) bool { return u.Equal(alias) }
		if !slices.ContainsFunc(b.snapshot.Managers(), known) {
			b.snapshot.Aliases = append(b.snapshot.Aliases, alias)
		}
	}
}

// name makes the URN of something of this testbed, or takes the one given, and
// sees to it that no two things have the same.
func (b *builder) name(typ urn.Type, name string, given field[urn.URN], at position, path string) urn.URN {
	id := given.value
	if !given.valid {
		authority := b.snapshot.Authority
		if authority == "" {
			authority = "unknown" // reported already
		}
		var err error
		if id, err = urn.New(authority, typ, name); err != nil {
			b.add(at, path, err.Error(), "")
			return urn.URN{}
		}
	}
	what := string(typ) + " " + name
	if other, taken := b.ids[id.Canonical()]; taken {
		b.add(at, path, fmt.Sprintf("%s has the URN of %s, %s", what, other, id), "names must differ, also in more than case of the authority")
	}
	b.ids[id.Canonical()] = what
	return id
}

func (b *builder) buildSites() {
	b.sites = map[string]bool{}
	for _, d := range b.decl.sites.value {
		name := d.it.name.value.text
		if b.sites[name] {
			b.add(d.it.name.at, d.it.name.path, fmt.Sprintf("a second site %q", name), "")
			continue
		}
		b.sites[name] = true
		b.snapshot.Sites = append(b.snapshot.Sites, Site{
			Name: name, Country: d.it.country.value.text,
			Latitude: d.it.latitude.value, Longitude: d.it.longitude.value,
		})
	}
}

// site resolves the site of a host or switch. With one site only, that is it.
func (b *builder) site(f field[word]) string {
	if !f.given {
		if len(b.snapshot.Sites) == 1 {
			return b.snapshot.Sites[0].Name
		}
		return ""
	}
	if f.valid && !b.sites[f.value.text] {
		var names []string
		for _, s := range b.snapshot.Sites {
			names = append(names, s.Name)
		}
		b.add(f.at, f.path, fmt.Sprintf("no site %q is declared", f.value.text),
			b.didYouMean(f.value.text, names, "declare it under sites"))
	}
	return f.value.text
}

func (b *builder) buildImages() {
	b.images = map[string]urn.URN{}
	for _, d := range b.decl.images.value {
		name := d.it.name.value.text
		if _, second := b.images[name]; second {
			b.add(d.it.name.at, d.it.name.path, fmt.Sprintf("a second image %q", name), "")
			continue
		}
		id := b.name(urn.Image, name, d.it.urn, d.at, d.path)
		b.images[name] = id
		b.images[id.Canonical().String()] = id
		b.imageNames = append(b.imageNames, name)
		b.snapshot.Images = append(b.snapshot.Images, Image{
			ID: id, Name: name, Description: d.it.description.value.text,
			OS: d.it.os.value.text, Distribution: d.it.distribution.value.text, Version: d.it.version.value.text, Architecture: d.it.architecture.value.text,
			Source: d.it.source.value.text, URL: d.it.url.value.text, Command: d.it.command.value.text,
		})
	}
}

// imageList resolves names and URNs of images.
func (b *builder) imageList(f field[[]word]) []urn.URN {
	var ids []urn.URN
	for _, w := range f.value {
		id, known := b.images[w.text]
		if !known {
			if u, err := urn.Parse(w.text); err == nil {
				id, known = b.images[u.Canonical().String()]
			}
		}
		if !known {
			b.add(w.at, w.path, fmt.Sprintf("no image %q is declared", w.text),
				b.didYouMean(w.text, b.imageNames, "declare it under images"))
			continue
		}
		if slices.Contains(ids, id) {
			b.add(w.at, w.path, fmt.Sprintf("image %q stands here twice", w.text), "")
			continue
		}
		ids = append(ids, id)
	}
	return ids
}

// Namespace is the sliver type that is there without being declared.
const Namespace request.SliverType = "namespace"

// rawPC is the field's name for a machine given out whole.
const rawPC request.SliverType = "raw-pc"

// DefaultNamespace is what a namespace node takes that does not say: little,
// since it is processes of the host, not a machine of its own.
var DefaultNamespace = capacity.Amount{Cores: 100, Memory: 256, Disk: 512}

func (b *builder) buildTypes() {
	b.types = map[request.SliverType]*SliverType{}
	called := map[request.SliverType]bool{}
	claim := func(w word) bool {
		name := request.SliverType(w.text)
		if called[name] {
			b.add(w.at, w.path, fmt.Sprintf("a second sliver type is called %q", name), "")
			return false
		}
		called[name] = true
		return true
	}
	named := func(d placed[sliverTypeDecl]) bool { return d.it.name.value.text == string(Namespace) }
	builtIn := !slices.ContainsFunc(b.decl.sliverTypes.value, named)
	called[Namespace] = builtIn
	declared := b.decl.sliverTypes.value
	for _, d := range declared { // names before aliases: they have the better right
		if d.it.name.valid && claim(d.it.name.value) {
			b.snapshot.Types = append(b.snapshot.Types, b.sliverType(d))
		}
	}
	for _, d := range declared {
		t := slices.IndexFunc(b.snapshot.Types, func(t SliverType) bool { return string(t.Name) == d.it.name.value.text })
		for _, alias := range d.it.aliases.value {
			if claim(alias) && t >= 0 {
				b.snapshot.Types[t].Aliases = append(b.snapshot.Types[t].Aliases, request.SliverType(alias.text))
			}
		}
	}
	if builtIn {
		b.snapshot.Types = append(b.snapshot.Types, SliverType{Name: Namespace, Driver: string(Namespace), Default: DefaultNamespace})
	}
	for i := range b.snapshot.Types {
		t := &b.snapshot.Types[i]
		b.types[t.Name] = t
		b.typeNames = append(b.typeNames, string(t.Name))
	}
}

func (b *builder) sliverType(d placed[sliverTypeDecl]) SliverType {
	t := SliverType{
		Name: request.SliverType(d.it.name.value.text), Driver: d.it.driver.value.text,
		Default: capacity.Amount{Cores: cores(d.it.cores), Memory: d.it.memory.value, Disk: d.it.disk.value, GPUs: int64(d.it.gpus.value)},
		Images:  b.imageList(d.it.images), WholeHost: d.it.wholeHost.value, Shaping: d.it.shaping.value, Delay: d.it.delay.value,
	}
	if t.Name == Namespace {
		t.Default = t.Default.Or(DefaultNamespace)
	}
	if t.Name == rawPC && !d.it.wholeHost.given {
		t.WholeHost = true
	}
	switch {
	case d.it.driver.given:
	case t.Name == Namespace:
		t.Driver = string(Namespace)
	default:
		b.add(d.at, join(d.path, "driver"), fmt.Sprintf("sliver type %s has no driver", t.Name), "name what makes such nodes, such as namespace or simulated")
	}
	return t
}

func cores(f field[float64]) capacity.Cores {
	return capacity.Cores(math.Round(f.value * float64(capacity.Core)))
}

func (b *builder) typeList(f field[[]word]) []request.SliverType {
	if !f.given {
		return []request.SliverType{Namespace}
	}
	var names []request.SliverType
	for _, w := range f.value {
		name := request.SliverType(w.text)
		switch {
		case b.types[name] == nil:
			b.add(w.at, w.path, fmt.Sprintf("no sliver type %q is declared", w.text),
				b.didYouMean(w.text, b.typeNames, "declare it under sliver_types"))
		case slices.Contains(names, name):
			b.add(w.at, w.path, fmt.Sprintf("sliver type %q stands here twice", w.text), "")
		default:
			names = append(names, name)
		}
	}
	if len(f.value) == 0 && f.valid {
		b.add(f.at, f.path, "no sliver type", "leave the field out for namespace")
	}
	return names
}

func (b *builder) buildHardwareTypes() {
	b.templates = map[string]*placed[hardwareTypeDecl]{}
	for i := range b.decl.hardwareTypes.value {
		d := &b.decl.hardwareTypes.value[i]
		name := d.it.name.value.text
		if b.templates[name] != nil {
			b.add(d.it.name.at, d.it.name.path, fmt.Sprintf("a second hardware type %q", name), "")
			continue
		}
		b.templates[name] = d
		b.snapshot.HardwareTypes = append(b.snapshot.HardwareTypes, HardwareType{
			Name: name, Description: d.it.description.value.text, Properties: d.it.offer.properties.value,
		})
	}
}

// completed is the offer of a host: its own fields, and those of its hardware
// types where it has none.
func (b *builder) completed(d *hostDecl) offerDecl {
	o := d.offer
	for _, w := range d.hardwareTypes.value {
		t := b.templates[w.text]
		if t == nil {
			continue
		}
		from := t.it.offer
		o.site = o.site.or(from.site)
		o.sliverTypes = o.sliverTypes.or(from.sliverTypes)
		o.images = o.images.or(from.images)
		o.cores = o.cores.or(from.cores)
		o.memory = o.memory.or(from.memory)
		o.disk = o.disk.or(from.disk)
		o.gpus = o.gpus.or(from.gpus)
		o.architecture = o.architecture.or(from.architecture)
		o.typeLimits = o.typeLimits.or(from.typeLimits)
		o.features = o.features.or(from.features)
		o.internal = o.internal.or(from.internal)
		o.underlay = o.underlay.or(from.underlay)
		if !o.exclusive.given && !o.shared.given {
			o.exclusive, o.shared = from.exclusive, from.shared
		}
		o.maxSlivers = o.maxSlivers.or(from.maxSlivers)
		o.interfaces = o.interfaces.or(from.interfaces)
		o.properties = o.properties.or(from.properties)
		o.access = o.access.or(from.access)
	}
	return o
}

// use says whether a host is for one slice, for several, or for either.
func use(o offerDecl, allWhole bool) (exclusive, shared bool) {
	switch {
	case o.exclusive.given && o.shared.given:
		return o.exclusive.value, o.shared.value
	case o.exclusive.given:
		return o.exclusive.value, !o.exclusive.value
	case o.shared.given:
		return !o.shared.value, o.shared.value
	}
	return true, !allWhole
}

func (b *builder) buildHosts() {
	for i := range b.decl.hosts.value {
		d := &b.decl.hosts.value[i]
		if d.it.name.valid {
			b.buildHostRange(d)
		}
	}
	if b.decl.hosts.valid && len(b.decl.hosts.value) == 0 {
		b.add(b.decl.hosts.at, b.decl.hosts.path, "no hosts", "a testbed has at least one: - name: host1")
	}
}

func (b *builder) buildHostRange(d *placed[hostDecl]) {
	names, ok := b.names(d.it.name, len(b.snapshot.Hosts), maxHosts, "hosts")
	if !ok {
		return
	}
	if d.it.urn.given && len(names) > 1 {
		b.add(d.it.urn.at, d.it.urn.path, "one URN for several hosts", "leave it out, or declare the hosts one by one")
		d.it.urn = field[urn.URN]{}
	}
	o := b.completed(&d.it)
	types := b.typeList(o.sliverTypes)
	allWhole := len(types) > 0
	for _, t := range types {
		allWhole = allWhole && b.types[t].WholeHost
	}
	host := Host{
		Site: b.site(o.site), HardwareTypes: texts(d.it.hardwareTypes), Types: types, Images: b.imageList(o.images),
		Capacity:     capacity.Amount{Cores: cores(o.cores), Memory: o.memory.value, Disk: o.disk.value, GPUs: int64(o.gpus.value)},
		Architecture: o.architecture.value.text, Internal: o.internal.value, Underlay: o.underlay.value, Features: b.features(o.features), TypeLimits: b.typeLimits(o.typeLimits),
		MaxSlivers: int(o.maxSlivers.value), OutOfService: d.it.outOfService.value.text,
		Properties: b.properties(&d.it),
	}
	host.Exclusive, host.Shared = use(o, allWhole)
	if !host.Exclusive && !host.Shared {
		b.add(d.at, d.path, "a host that is neither exclusive nor shared can hold no node", "make one of them true, or say why under out_of_service")
	}
	someWhole := slices.ContainsFunc(types, func(t request.SliverType) bool { return b.types[t].WholeHost })
	switch experimental := slices.ContainsFunc(o.interfaces.value, func(i placed[interfaceDecl]) bool { return i.it.role.value.text != string(Control) }); {
	case o.underlay.value > 0 && experimental:
		b.add(o.underlay.at, o.underlay.path, "a host with interfaces for links has no underlay", "give the interfaces speeds")
	case o.underlay.value > 0 && someWhole:
		b.add(o.underlay.at, o.underlay.path, "links of nodes that take whole hosts do not share an underlay", "declare the host's interfaces")
	}
	for _, name := range names {
		if !b.claim(name, node{index: len(b.snapshot.Hosts)}, d.it.name) {
			continue
		}
		host.Name = name
		host.ID = b.name(urn.Node, name, d.it.urn, d.it.name.at, d.it.name.path)
		host.Interfaces = b.buildInterfaces(name, o.interfaces, len(names) == 1)
		if host.Access = b.buildAccess(name, o.access); host.Access != nil && !host.Access.GivesRoot() {
			host.Properties = withPlainAccounts(host.Properties)
		}
		b.snapshot.Hosts = append(b.snapshot.Hosts, host)
		b.places[name] = place{d.at, d.path}
	}
}

// names expands the name of hosts or switches, within a bound of all.
func (b *builder) names(f field[word], have, most int, what string) ([]string, bool) {
	names, err := expand(f.value.text)
	if err != nil {
		b.add(f.at, f.path, err.Error(), "write ranges as pc[001-160]")
		return nil, false
	}
	if have+len(names) > most {
		b.add(f.at, f.path, fmt.Sprintf("more than %d %s", most, what), "")
		return nil, false
	}
	if i := slices.IndexFunc(names, func(n string) bool { return !plainName.MatchString(n) }); i >= 0 {
		b.add(f.at, f.path, fmt.Sprintf("%q is no name", names[i]), "letters, digits, dots, dashes and underscores")
		return nil, false
	}
	return names, true
}

// claim gives a name to a host or switch.
func (b *builder) claim(name string, n node, f field[word]) bool {
	if other, taken := b.nodes[name]; taken {
		what := "host"
		if other.isSwitch {
			what = "switch"
		}
		b.add(f.at, f.path, fmt.Sprintf("there is a %s %q already", what, name), "")
		return false
	}
	b.nodes[name] = n
	b.nodeNames = append(b.nodeNames, name)
	return true
}

func texts(f field[[]word]) []string {
	var all []string
	for _, w := range f.value {
		all = append(all, w.text)
	}
	return all
}

// properties are the host's own over those of its hardware types.
func (b *builder) properties(d *hostDecl) map[string]string {
	sources := []map[string]string{d.offer.properties.value}
	for _, w := range d.hardwareTypes.value {
		if t := b.templates[w.text]; t != nil {
			sources = append(sources, t.it.offer.properties.value)
		}
	}
	var all map[string]string
	for _, source := range sources {
		for name, v := range source {
			if all == nil {
				all = map[string]string{}
			}
			if _, given := all[name]; !given {
				all[name] = v
			}
		}
	}
	return all
}

func (b *builder) buildInterfaces(host string, f field[[]placed[interfaceDecl]], single bool) []Interface {
	var all []Interface
	seen := map[string]bool{}
	for _, d := range f.value {
		if !d.it.name.valid {
			continue
		}
		names, err := expand(d.it.name.value.text)
		if err != nil {
			b.add(d.it.name.at, d.it.name.path, err.Error(), "write ranges as eth[0-3]")
			continue
		}
		if d.it.urn.given && (len(names) > 1 || !single) {
			b.add(d.it.urn.at, d.it.urn.path, "one URN for several interfaces", "leave it out, or declare them one by one")
			d.it.urn = field[urn.URN]{}
		}
		if d.it.mac.given && (len(names) > 1 || !single) {
			b.add(d.it.mac.at, d.it.mac.path, "one hardware address for several interfaces", "leave it out, or declare them one by one")
		}
		if b.interfaces += len(names); b.interfaces > maxInterfaces {
			b.add(d.it.name.at, d.it.name.path, fmt.Sprintf("more than %d interfaces", maxInterfaces), "")
			return all
		}
		role := Experimental
		if d.it.role.valid && d.it.role.given {
			role = Role(d.it.role.value.text)
		}
		for _, name := range names {
			if seen[name] || !portName.MatchString(name) {
				what := "a second interface"
				if !seen[name] {
					what = "no name for an interface:"
				}
				b.add(d.it.name.at, d.it.name.path, fmt.Sprintf("%s %q", what, name), "")
				continue
			}
			seen[name] = true
			id := b.name(urn.Interface, host+":"+name, d.it.urn, d.it.name.at, d.it.name.path)
			all = append(all, Interface{ID: id, Name: name, Speed: d.it.speed.value, Role: role, MAC: strings.ToLower(d.it.mac.value.text)})
		}
	}
	return all
}
