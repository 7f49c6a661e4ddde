package rspec

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"croft/capacity"
	"croft/inventory"
	"croft/languages"
	"croft/request"
	"croft/urn"
)

// AdvertisementVersions lists the formats that Advertisement writes.
func AdvertisementVersions() []languages.Version {
	return []languages.Version{GENI3.version("ad")}
}

// AdvertisementOptions are what a caller of ListResources can choose.
type AdvertisementOptions struct {
	AvailableOnly bool      // leave out what is not available now
	Now           time.Time // written as "generated"; the zero time is not
}

// Advertisement tells what a testbed has: an advertisement RSpec, GENI 3. A
// nil available takes every host as available. To write advertisements of one
// testbed again and again, use a Catalogue.
func Advertisement(snapshot *inventory.Snapshot, available func(*inventory.Host) bool, o AdvertisementOptions) ([]byte, error) {
	c, err := NewCatalogue(snapshot)
	if err != nil {
		return nil, err
	}
	return c.Ad(nil, available, o).Bytes(), nil
}

// Catalogue is a testbed made ready for advertisements: all that only changes
// with the inventory is written, what changes with every reservation is not.
type Catalogue struct {
	head, tail string
	items      []catalogueItem // hosts, switches, links
	cuts       []int           // where blocks of items begin, and the end
	packers    sync.Pool
}

// catalogueItem is an element of the advertisement. That of a host is cut where
// its availability goes.
type catalogueItem struct {
	start, rest string
	host        *inventory.Host // of a host
	ends        [2]int          // of a link: items that it joins; none if they are not here
}

// none is no item.
const none = -1

// NewCatalogue makes a testbed ready for advertisements.
func NewCatalogue(snapshot *inventory.Snapshot) (*Catalogue, error) {
	if snapshot == nil || snapshot.Manager.IsZero() {
		return nil, errors.New("advertising: the inventory has no component manager")
	}
	w := &catalogueWriter{Snapshot: snapshot, sites: map[string]*inventory.Site{}, images: map[urn.URN]*inventory.Image{}}
	for i := range snapshot.Sites {
		w.sites[snapshot.Sites[i].Name] = &snapshot.Sites[i]
	}
	for i := range snapshot.Images {
		w.images[snapshot.Images[i].ID.Canonical()] = &snapshot.Images[i]
	}
	c := &Catalogue{head: w.head(), tail: "</rspec>\n"}
	place := make(map[urn.URN]int, len(snapshot.Hosts)+len(snapshot.Switches))
	for i := range snapshot.Hosts {
		place[snapshot.Hosts[i].ID.Canonical()] = len(c.items)
		c.items = append(c.items, w.host(&snapshot.Hosts[i]))
	}
	for i := range snapshot.Switches {
		place[snapshot.Switches[i].ID.Canonical()] = len(c.items)
		c.items = append(c.items, w.networkSwitch(&snapshot.Switches[i]))
	}
	for i := range snapshot.Links {
		item := w.link(&snapshot.Links[i])
		for e, end := range snapshot.Links[i].Ends {
			item.ends[e] = none
			if at, ok := place[end.Node.Canonical()]; ok {
				item.ends[e] = at
			}
		}
		c.items = append(c.items, item)
	}
	c.cut()
	return c, nil
}

const rootTagOfAd = `<?xml version="1.0" encoding="UTF-8"?>
<rspec xmlns="http://www.geni.net/resources/rspec/3" xmlns:emulab="` + nsEmulab + `"` +
	` xmlns:xsi="` + nsXSI + `" xsi:schemaLocation="http://www.geni.net/resources/rspec/3 http://www.geni.net/resources/rspec/3/ad.xsd` +
	` ` + nsOpstate + ` ` + nsOpstate + `/ad.xsd` +
	` ` + nsSharedVLAN + ` ` + nsSharedVLAN + `/ad.xsd"` +
	` type="advertisement"`

// catalogueWriter writes the elements of a testbed.
type catalogueWriter struct {
	*inventory.Snapshot
	sites  map[string]*inventory.Site
	images map[urn.URN]*inventory.Image
}

// line is what elements below the root start with.
const line = "\n  "

func written(f fragment) string {
	var b strings.Builder
	f.write(&b, line)
	return strings.TrimPrefix(b.String(), "\n") + "\n"
}

// head is all that concerns the testbed as a whole.
func (w *catalogueWriter) head() string {
	var b strings.Builder
	if slices.ContainsFunc(w.Offered(), func(t inventory.SliverType) bool { return t.Driver == simulated }) {
		b.WriteString("  <!-- Nodes of some sliver types here are simulated (see the descriptions in rspec_opstate):" +
			" they change their states as real ones do, but there are no machines, and nothing to log in to. -->\n")
	}
	for _, e := range w.External {
		f := fragment{name: "external_ref"}
		f.attr("component_id", e.Interface.String())
		f.attr("component_manager_id", e.Manager.String())
		b.WriteString(written(f))
	}
	for _, f := range w.opstates() {
		b.WriteString(written(f))
	}
	if len(w.SharedVLANs) > 0 {
		f := fragment{name: "rspec_shared_vlan", attrs: []pair{{"xmlns", nsSharedVLAN}}}
		for _, v := range w.SharedVLANs {
			a := fragment{name: "available"}
			a.attr("name", v.Name)
			if v.Tag != 0 {
				a.attr("localTag", strconv.Itoa(v.Tag))
			}
			if v.Restricted {
				a.attr("restricted", "true")
			}
			f.kids = append(f.kids, a)
		}
		b.WriteString(written(f))
	}
	info := fragment{name: "site_info", attrs: []pair{{"xmlns", nsSiteInfo}}}
	for i := range w.Sites {
		if f, ok := location(&w.Sites[i]); ok {
			info.kids = append(info.kids, f)
		}
	}
	if len(info.kids) > 0 {
		b.WriteString(written(info))
	}
	return b.String()
}

// host writes a host as a node.
func (w *catalogueWriter) host(h *inventory.Host) catalogueItem {
	f := fragment{name: "node"}
	f.attr("component_id", h.ID.String())
	f.attr("component_manager_id", w.Manager.String())
	f.attr("component_name", h.Name)
	f.attr("exclusive", strconv.FormatBool(!h.Shared))
	for _, name := range h.HardwareTypes {
		t := fragment{name: "hardware_type"}
		t.attr("name", name)
		if slots := slots(h); slots > 0 {
			t.kids = append(t.kids, fragment{name: "emulab:node_type", attrs: []pair{{"type_slots", strconv.Itoa(slots)}}})
		}
		f.kids = append(f.kids, t)
	}
	for _, name := range h.Types {
		f.kids = append(f.kids, w.sliverType(h, name))
	}
	if site := w.sites[h.Site]; site != nil {
		if l, ok := location(site); ok {
			f.kids = append(f.kids, l)
		}
	}
	for i := range h.Interfaces {
		f.kids = append(f.kids, advertisedInterface(&h.Interfaces[i]))
	}
	f.kids = append(f.kids, w.features(h)...)
	// The availability goes first, so that the element can be cut behind its
	// start tag.
	text := written(f)
	if len(f.kids) == 0 {
		start := strings.TrimSuffix(text, "/>\n") + ">\n"
		return catalogueItem{host: h, start: start, rest: "  </node>\n", ends: [2]int{none, none}}
	}
	end := strings.Index(text, ">\n") + len(">\n")
	return catalogueItem{host: h, start: text[:end], rest: text[end:], ends: [2]int{none, none}}
}

// features writes the features of a host as Emulab does, and those of its
// properties that are numbers; its extension has no place for others.
func (w *catalogueWriter) features(h *inventory.Host) []fragment {
	var list []fragment
	for _, x := range h.Features {
		f := fragment{name: "emulab:fd", attrs: []pair{{"name", x.Name}}}
		if x.Amount > 0 {
			list = append(list, fragment{name: f.name, attrs: append(f.attrs, pair{"weight", degrees(x.Amount)}, pair{"local_operator", "+"})})
			continue
		}
		f.attrs = append(f.attrs, pair{"weight", degrees(x.Weight)})
		for _, t := range w.Features {
			switch {
			case t.Name != x.Name:
			case t.FirstOnly:
				f.attrs = append(f.attrs, pair{"global_operator", "OnceOnly"})
			default:
				f.attrs = append(f.attrs, pair{"global_operator", "FirstFree"})
			}
		}
		list = append(list, f)
	}
	properties := h.Properties
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		value := properties[name]
		if n, err := strconv.ParseFloat(value, 32); err != nil || math.IsInf(n, 0) || math.IsNaN(n) || strings.ContainsAny(value, "xX_") {
			continue
		}
		list = append(list, fragment{name: "emulab:fd", attrs: []pair{{"name", name}, {"weight", value}}})
	}
	return list
}

// slots is how many nodes a host holds at once; 0 if no number says.
func slots(h *inventory.Host) int {
	if !h.Shared {
		return 1
	}
	return h.MaxSlivers
}

// networkSwitch writes a switch as a node that nothing can be made on, as
// Emulab does.
func (w *catalogueWriter) networkSwitch(s *inventory.Switch) catalogueItem {
	f := fragment{name: "node"}
	f.attr("component_id", s.ID.String())
	f.attr("component_manager_id", w.Manager.String())
	f.attr("component_name", s.Name)
	f.attr("exclusive", "false")
	types := s.HardwareTypes
	if !slices.Contains(types, "switch") { // by which clients know it for one
		types = append(slices.Clone(types), "switch")
	}
	for _, name := range types {
		f.kids = append(f.kids, fragment{name: "hardware_type", attrs: []pair{{"name", name}}})
	}
	f.kids = append(f.kids, fragment{name: "available", attrs: []pair{{"now", "true"}}})
	if site := w.sites[s.Site]; site != nil {
		if l, ok := location(site); ok {
			f.kids = append(f.kids, l)
		}
	}
	for i := range s.Ports {
		f.kids = append(f.kids, advertisedInterface(&s.Ports[i]))
	}
	return catalogueItem{start: written(f), ends: [2]int{none, none}}
}

// sliverType writes a sliver type and the images that a host boots of it. The
// first image is the default.
func (w *catalogueWriter) sliverType(h *inventory.Host, name request.SliverType) fragment {
	f := fragment{name: "sliver_type"}
	f.attr("name", string(name))
	t, ok := w.Type(name)
	if !ok {
		return f
	}
	can := map[urn.URN]bool{}
	for _, id := range h.Images {
		can[id.Canonical()] = true
	}
	for _, id := range t.Images {
		if len(can) > 0 && !can[id.Canonical()] {
			continue
		}
		image := fragment{name: "disk_image"}
		image.attr("name", id.String())
		if i := w.images[id.Canonical()]; i != nil {
			image.attr("os", i.OS)
			image.attr("version", i.Version)
			image.attr("description", i.Description)
		}
		if len(f.kids) == 0 {
			image.attr("default", "true")
		}
		f.kids = append(f.kids, image)
	}
	return f
}

// location writes where a site is. The schema wants a country; a site without
// one is not told.
func location(s *inventory.Site) (fragment, bool) {
	f := fragment{name: "location"}
	f.attr("country", s.Country)
	if s.Latitude != 0 || s.Longitude != 0 {
		f.attr("latitude", degrees(s.Latitude))
		f.attr("longitude", degrees(s.Longitude))
	}
	return f, s.Country != ""
}

func degrees(d float64) string { return strconv.FormatFloat(d, 'f', -1, 64) }

func advertisedInterface(i *inventory.Interface) fragment {
	f := fragment{name: "interface"}
	f.attr("component_id", i.ID.String())
	f.attr("component_name", i.Name)
	f.attr("role", string(i.Role))
	return f
}

// link writes a cable or a trunk, with what it carries in each direction.
func (w *catalogueWriter) link(l *inventory.Link) catalogueItem {
	f := fragment{name: "link"}
	f.attr("component_id", l.ID.String())
	f.attr("component_name", l.Name)
	f.kids = append(f.kids, fragment{name: "component_manager", attrs: []pair{{"name", w.Manager.String()}}})
	for _, end := range l.Ends {
		f.kids = append(f.kids, fragment{name: "interface_ref", attrs: []pair{{"component_id", end.Interface.String()}}})
	}
	for i, end := range l.Ends {
		p := fragment{name: "property"}
		p.attr("source_id", end.Interface.String())
		p.attr("dest_id", l.Ends[1-i].Interface.String())
		if l.Capacity > 0 {
			p.attr("capacity", kbps(l.Capacity))
		}
		f.kids = append(f.kids, p)
	}
	f.kids = append(f.kids, fragment{name: "link_type", attrs: []pair{{"name", "ethernet"}}})
	return catalogueItem{start: written(f)}
}

func kbps(rate capacity.Kbps) string { return fmt.Sprint(int64(rate)) }
