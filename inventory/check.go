package inventory

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"croft/capacity"
	"croft/request"
	"croft/urn"
)

// dockerDriver is the driver whose nodes have no system but their image's.
const dockerDriver = "docker"

// Machine is what Check compares an inventory with. What is zero or nil is not
// known and not compared.
type Machine struct {
	Cores        int
	Memory, Disk capacity.MiB
	Drivers      []string               // those that this program has
	IsDirectory  func(path string) bool // of the machine's file system
}

// Check reads an inventory as Parse does and gives advice: what is legal, but
// probably not meant. Advice is in the order of the lines.
func Check(data []byte, name string, m Machine) (*Snapshot, []Problem, error) {
	b, err := build(data, name)
	if err != nil {
		return nil, nil, err
	}
	a := &adviser{builder: b, machine: m, advice: problems{file: name}}
	a.checkSites()
	a.checkImages()
	a.checkTypes()
	a.checkHardwareTypes()
	a.checkHosts()
	a.checkShares()
	a.checkWiring()
	a.checkVLANs()
	return b.snapshot, a.advice.sorted(), nil
}

type adviser struct {
	*builder
	machine Machine
	advice  problems
}

func (a *adviser) checkSites() {
	used := map[string]bool{}
	for _, h := range a.snapshot.Hosts {
		used[h.Site] = true
	}
	for _, s := range a.snapshot.Switches {
		used[s.Site] = true
	}
	for _, d := range a.decl.sites.value {
		if !used[d.it.name.value.text] {
			a.advice.add(d.at, d.path, fmt.Sprintf("nothing stands at site %q", d.it.name.value.text), "")
		}
		if !d.it.country.given {
			a.advice.add(d.at, d.path, fmt.Sprintf("site %q has no country", d.it.name.value.text), "advertisements want one, such as country: BE")
		}
		if d.it.latitude.given != d.it.longitude.given {
			a.advice.add(d.at, d.path, fmt.Sprintf("site %q has only one of latitude and longitude", d.it.name.value.text), "")
		}
	}
}

func (a *adviser) checkImages() {
	for i, d := range a.decl.images.value {
		if i >= len(a.snapshot.Images) {
			break
		}
		image := a.snapshot.Images[i]
		var drivers []string
		for _, t := range a.snapshot.Types {
			if slices.Contains(t.Images, image.ID) {
				drivers = append(drivers, t.Driver)
			}
		}
		if len(drivers) == 0 {
			a.advice.add(d.at, d.path, fmt.Sprintf("no sliver type has image %s, so nobody can boot it", image.Name), "add it to the images of a sliver type")
		}
		if slices.Contains(drivers, dockerDriver) && image.Source == "" {
			a.advice.add(d.at, d.path, fmt.Sprintf("image %s has no source", image.Name), "the docker driver runs images by the names that Docker has for them, such as \"debian:12\"")
		}
		if !slices.Contains(drivers, string(Namespace)) {
			continue
		}
		at, path := d.it.source.at, d.it.source.path
		switch {
		case image.Source == "":
			a.advice.add(d.at, d.path, fmt.Sprintf("image %s has no source", image.Name), "the namespace driver boots a directory with a root file system")
		case !filepath.IsAbs(image.Source):
			a.advice.add(at, path, fmt.Sprintf("%q is no absolute path", image.Source), "it would depend on where the server was started")
		case a.machine.IsDirectory != nil && !a.machine.IsDirectory(image.Source):
			a.advice.add(at, path, fmt.Sprintf("there is no directory %s", image.Source), "")
		}
	}
}

func (a *adviser) checkTypes() {
	for _, d := range a.decl.sliverTypes.value {
		t, known := a.snapshot.Type(request.SliverType(d.it.name.value.text))
		if !known {
			continue
		}
		var offering []Host
		for _, h := range a.snapshot.Hosts {
			if slices.Contains(h.Types, t.Name) {
				offering = append(offering, h)
			}
		}
		if t.Driver == dockerDriver && len(t.Images) == 0 {
			a.advice.add(d.at, d.path, fmt.Sprintf("sliver type %s has no images", t.Name), "containers have no system without one: add images")
		}
		if len(offering) == 0 {
			a.advice.add(d.at, d.path, fmt.Sprintf("no host offers sliver type %s", t.Name), "add it to the sliver_types of a host or hardware type")
		}
		for i, id := range t.Images {
			boots := func(h Host) bool { return len(h.Images) == 0 || slices.Contains(h.Images, id) }
			if len(offering) > 0 && !slices.ContainsFunc(offering, boots) {
				a.advice.add(d.it.images.value[i].at, d.it.images.value[i].path,
					fmt.Sprintf("no host that offers %s boots image %s", t.Name, d.it.images.value[i].text), "")
			}
		}
		if a.machine.Drivers != nil && !slices.Contains(a.machine.Drivers, t.Driver) {
			a.advice.add(d.it.driver.at, d.it.driver.path, fmt.Sprintf("there is no driver %q", t.Driver),
				a.didYouMean(t.Driver, a.machine.Drivers, oneOf(a.machine.Drivers)))
		}
	}
}

func (a *adviser) checkHardwareTypes() {
	var declared []string
	for _, t := range a.snapshot.HardwareTypes {
		declared = append(declared, t.Name)
	}
	used := map[string]bool{}
	for _, d := range a.decl.hosts.value {
		for _, w := range d.it.hardwareTypes.value {
			used[w.text] = true
			if len(declared) > 0 && !slices.Contains(declared, w.text) {
				a.advice.add(w.at, w.path, fmt.Sprintf("hardware type %q is not declared, so it gives the host nothing", w.text),
					a.didYouMean(w.text, declared, "declare it under hardware_types, or ignore this if the name is all there is to it"))
			}
		}
	}
	for _, d := range a.decl.hardwareTypes.value {
		if !used[d.it.name.value.text] {
			a.advice.add(d.at, d.path, fmt.Sprintf("no host is of hardware type %q", d.it.name.value.text), "")
		}
	}
}

func (a *adviser) checkHosts() {
	in := 0
	told := map[string]bool{} // of a range, the first host stands for all
	for i := range a.snapshot.Hosts {
		h := &a.snapshot.Hosts[i]
		if h.OutOfService == "" {
			in++
		}
		p := a.places[h.Name]
		if told[p.path] {
			continue
		}
		told[p.path] = true
		if h.Capacity == (capacity.Amount{}) && h.MaxSlivers == 0 && !a.allWhole(h) {
			a.advice.add(p.at, p.path, fmt.Sprintf("host %s takes any number of nodes", h.Name), "give it cores and memory, or max_slivers")
		}
		if h.Shared && a.allWhole(h) {
			a.advice.add(p.at, p.path, fmt.Sprintf("host %s is shared, but each of its nodes takes the whole of it", h.Name), "leave shared out")
		}
		for _, name := range h.Types {
			if t := a.types[name]; !t.WholeHost && !t.Default.Fits(counted(h.Capacity)) {
				a.advice.add(p.at, p.path, fmt.Sprintf("host %s is too small for a %s node that does not say what it takes", h.Name, name),
					fmt.Sprintf("that is %s; the host has %s", t.Default, h.Capacity))
			}
		}
	}
	if in == 0 && len(a.snapshot.Hosts) > 0 {
		a.advice.add(a.decl.hosts.at, a.decl.hosts.path, "every host is out of service", "")
	}
}

// counted is a capacity with what is not counted as good as endless.
func counted(c capacity.Amount) capacity.Amount {
	return c.Or(capacity.Amount{Cores: 1 << 60, Memory: 1 << 60, Disk: 1 << 60})
}

func (a *adviser) allWhole(h *Host) bool {
	return !slices.ContainsFunc(h.Types, func(t request.SliverType) bool { return !a.types[t].WholeHost })
}

// checkShares compares the hosts that the namespace driver makes nodes on, all
// of them shares of the one machine, with the machine.
func (a *adviser) checkShares() {
	var sum capacity.Amount
	for _, h := range a.snapshot.Hosts {
		if slices.ContainsFunc(h.Types, func(t request.SliverType) bool { return a.types[t].Driver == string(Namespace) }) {
			sum = sum.Plus(h.Capacity)
		}
	}
	at, path := a.decl.hosts.at, a.decl.hosts.path
	const hint = "it will work until they are all used at once"
	if m := a.machine; m.Cores > 0 && sum.Cores > capacity.Cores(m.Cores)*capacity.Core {
		a.advice.add(at, path, fmt.Sprintf("the hosts share out %s cores; this machine has %d", formatCores(sum.Cores), m.Cores), hint)
	}
	if m := a.machine; m.Memory > 0 && sum.Memory > m.Memory {
		a.advice.add(at, path, fmt.Sprintf("the hosts share out %s of memory; this machine has %s", formatSize(sum.Memory), formatSize(m.Memory)), hint)
	}
	if m := a.machine; m.Disk > 0 && sum.Disk > m.Disk {
		a.advice.add(at, path, fmt.Sprintf("the hosts share out %s of disk; this machine has %s", formatSize(sum.Disk), formatSize(m.Disk)), hint)
	}
}

// checkWiring tells of what no link reaches, if there are switches at all.
func (a *adviser) checkWiring() {
	if len(a.snapshot.Switches) == 0 {
		return
	}
	next := map[urn.URN][]urn.URN{}
	for _, l := range a.snapshot.Links {
		one, other := l.Ends[0].Node.Canonical(), l.Ends[1].Node.Canonical()
		next[one] = append(next[one], other)
		next[other] = append(next[other], one)
	}
	reached := map[urn.URN]bool{}
	start := a.snapshot.Switches[0].ID.Canonical()
	for frontier := []urn.URN{start}; len(frontier) > 0; {
		id := frontier[len(frontier)-1]
		frontier = frontier[:len(frontier)-1]
		if reached[id] || id.IsZero() {
			continue
		}
		reached[id] = true
		frontier = append(frontier, next[id]...)
	}
	var apart []string
	for _, s := range a.snapshot.Switches {
		if !reached[s.ID.Canonical()] {
			apart = append(apart, s.Name)
		}
	}
	if len(apart) > 0 {
		a.advice.add(a.decl.switches.at, a.decl.switches.path,
			fmt.Sprintf("no trunk leads from %s to %s", a.snapshot.Switches[0].Name, shortList(apart)), "declare trunks, or ignore this if they are apart")
	}
	var loose []string
	for _, h := range a.snapshot.Hosts {
		experimental := slices.ContainsFunc(h.Interfaces, func(i Interface) bool { return i.Role == Experimental })
		if experimental && len(next[h.ID.Canonical()]) == 0 {
			loose = append(loose, h.Name)
		}
	}
	if len(loose) > 0 {
		a.advice.add(a.decl.hosts.at, a.decl.hosts.path, "no cable leads to "+shortList(loose), "declare cables, by rule or one by one")
	}
}

func shortList(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (a *adviser) checkVLANs() {
	ranges := a.snapshot.Pools.VLANs
	words := a.decl.pools.value.it.vlans.value
	for i, r := range ranges {
		for _, o := range ranges[:i] {
			if r.First <= o.Last && o.First <= r.Last {
				a.advice.add(words[i].at, words[i].path, fmt.Sprintf("VLAN tags %d-%d overlap %d-%d", r.First, r.Last, o.First, o.Last), "")
			}
		}
	}
	for i, v := range a.snapshot.SharedVLANs {
		for _, r := range ranges {
			if r.First <= v.Tag && v.Tag <= r.Last {
				d := a.decl.sharedVLANs.value[i]
				a.advice.add(d.it.tag.at, d.it.tag.path, fmt.Sprintf("tag %d of shared VLAN %s is in the pool for links", v.Tag, v.Name), "take it out of pools.vlans")
			}
		}
	}
}
