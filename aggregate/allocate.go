package aggregate

import (
	"context"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"croft/credentials"
	"croft/drivers"
	"croft/inventory"
	"croft/languages"
	"croft/mapping"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// AllocateOptions are what Allocate can be told besides the document.
type AllocateOptions struct {
	End    time.Time      // when the slivers should expire; zero leaves it open
	Inputs map[string]any // values for parameters of the document
	// Documents are those that the document may refer to, in place of the
	// slice's own; nil leaves it at these.
	Documents []languages.Document

	by urn.URN // who reserves
}

// Allocated is the answer to Allocate.
type Allocated struct {
	Manifest []byte            // of the new slivers only
	Version  languages.Version // of the manifest: the document's own where manifests are written in it
	Slivers  []slivers.Sliver
	Warnings []languages.Problem
}

// attempts is how often Allocate maps when others are quicker, the last time
// alone.
const attempts = 4

// Allocate reserves what a document asks for: all of it or nothing.
func (s *Service) Allocate(ctx context.Context, p *credentials.Principal, slice urn.URN, document []byte, o AllocateOptions) (*Allocated, error) {
	a, err := s.allocate(ctx, p, slice, document, o)
	if err != nil {
		return nil, fail("allocate", slice, err)
	}
	return a, nil
}

func (s *Service) allocate(ctx context.Context, p *credentials.Principal, slice urn.URN, document []byte, o AllocateOptions) (*Allocated, error) {
	grant, unlock, err := s.enter(ctx, p, credentials.Allocate, Target{Slice: slice}, false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	o.by = p.User
	return s.reserve(ctx, grant, slice, document, o)
}

// reserve is Allocate for a caller who may and who has the slice's lock.
func (s *Service) reserve(ctx context.Context, grant credentials.Grant, slice urn.URN, document []byte, o AllocateOptions) (*Allocated, error) {
	w, err := s.understand(ctx, grant, slice, document, o)
	if err != nil {
		return nil, err
	}
	if w.nothing() {
		return nil, &Error{Kind: BadArgs, Err: errors.New("the document asks for nothing of this aggregate"),
			Hint: fmt.Sprintf("nodes of this aggregate have component_manager_id %q, or none", w.snapshot.Manager)}
	}
	var placed []slivers.Sliver
	for n := range attempts {
		// Many may map at once; who was too late too often maps alone.
		placed, err = s.placeAndReserve(ctx, n == attempts-1, w)
		if !errors.Is(err, slivers.ErrConflict) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	s.wakeExpiry()
	version := manifestVersion(w.compiled.Version)
	manifest, err := s.manifest(ctx, w.snapshot, slice, placed, version)
	if err != nil {
		// The caller gets nothing, so nothing may stay.
		return nil, errors.Join(err, s.forget(context.WithoutCancel(ctx), placed))
	}
	return &Allocated{Manifest: manifest, Version: version, Slivers: placed,
		Warnings: slices.Concat(w.compiled.Warnings, unpublished(w.compiled.Request), untagged(w.compiled.Request, placed))}, nil
}

// placeAndReserve maps a request and commits the placement. The error is
// slivers.ErrConflict if somebody else was quicker; alone, nobody can be.
func (s *Service) placeAndReserve(ctx context.Context, alone bool, w *wanted) ([]slivers.Sliver, error) {
	if alone {
		s.placing.Lock()
		defer s.placing.Unlock()
	} else {
		s.placing.RLock()
		defer s.placing.RUnlock()
	}
	occupancy := s.Store.Occupancy()
	placed, extensions, err := s.placeWanted(w, occupancy)
	if err != nil {
		return nil, err
	}
	for i := range placed {
		if placed[i].Node != nil {
			placed[i].Node.Owner = w.by
		}
	}
	req := w.compiled.Request
	if len(req.Nodes) > 0 && !slices.ContainsFunc(placed, func(v slivers.Sliver) bool { return v.Node != nil }) {
		return nil, &Error{Kind: TooBig, Err: errors.New("there is no room for any of the nodes, which are all optional")}
	}
	equip(placed, req)
	steps, tasks := placedSteps(w.steps, req.Steps, placed, w.have)
	if tasks, err = s.imageCommands(ctx, w.snapshot, tasks, placed); err != nil {
		return nil, err
	}
	return placed, s.Store.Reserve(ctx, slivers.Reservation{
		Slice: w.document.Slice, Slivers: placed, Mapped: occupancy.Version, Document: w.document,
		Extensions: extensions, Steps: steps, Tasks: tasks,
	})
}

// forget drops slivers that no driver knows of.
func (s *Service) forget(ctx context.Context, list []slivers.Sliver) error {
	return s.Store.Update(ctx, urnsOf(list), func(held []*slivers.Sliver) error {
		for _, v := range held {
			v.Goal = slivers.Forgotten
		}
		return nil
	})
}

// unknownIn refuses names that the slice has given to other slivers already.
func unknownIn(have []slivers.Sliver, req *request.Request) error {
	taken := map[request.ClientID]bool{}
	for _, v := range have {
		taken[v.ClientID] = true
	}
	clash := func(id request.ClientID, at request.Place) error {
		return &Error{Item: string(id), Kind: Exists, Err: fmt.Errorf("%s: the slice has a sliver of that client_id already", at),
			Hint: "name it otherwise; links may join existing nodes by their client_ids"}
	}
	for _, n := range req.Nodes {
		if taken[n.ID] {
			return clash(n.ID, n.Place)
		}
	}
	for _, l := range req.Links {
		if taken[l.ID] && !l.Existing {
			return clash(l.ID, l.Place)
		}
	}
	return nil
}

// scope is what a slice has that a document can refer to.
func (s *Service) scope(ctx context.Context, slice urn.URN, have []slivers.Sliver) (languages.Scope, error) {
	scope := languages.Scope{Existing: existingNames(have)}
	for _, v := range have {
		if v.Link != nil {
			scope.Links = append(scope.Links, v.ClientID)
		}
	}
	documents, err := s.Store.Documents(ctx, slice)
	if err != nil {
		return scope, err
	}
	for _, d := range documents {
		scope.Documents = append(scope.Documents, languages.Document{MediaType: d.MediaType, Bytes: d.Bytes, Inputs: d.Inputs})
	}
	return scope, nil
}

func existingNames(have []slivers.Sliver) []languages.Existing {
	var list []languages.Existing
	for _, v := range have {
		if v.Node == nil {
			continue
		}
		e := languages.Existing{Node: v.ClientID}
		for _, i := range v.Node.Interfaces {
			e.Interfaces = append(e.Interfaces, i.ID)
			e.Addresses = append(e.Addresses, i.Addresses...)
		}
		list = append(list, e)
	}
	return list
}

// existingNodes are the nodes of a slice as a mapping sees them: their
// interfaces to links that get more ends are open.
func existingNodes(have []slivers.Sliver, more extended) []mapping.ExistingNode {
	type end struct{ node, iface request.ClientID }
	linked := map[end]bool{}
	for _, v := range have {
		if v.Link != nil && more[v.ClientID] == nil {
			for _, e := range v.Link.Ends {
				linked[end{e.Node, e.Interface}] = true
			}
		}
	}
	var list []mapping.ExistingNode
	for _, v := range have {
		if v.Node == nil {
			continue
		}
		n := mapping.ExistingNode{ID: v.ClientID, Host: v.Node.Host, SliverType: v.Node.SliverType}
		for _, i := range v.Node.Interfaces {
			n.Interfaces = append(n.Interfaces, mapping.ExistingInterface{
				ID: i.ID, Linked: linked[end{v.ClientID, i.ID}], Component: i.Component, Addresses: i.Addresses,
			})
		}
		list = append(list, n)
	}
	return list
}

// place maps a request and makes slivers of the placement, and ends of the
// links that get more of them.
func (s *Service) place(snapshot *inventory.Snapshot, occupancy mapping.Occupancy, req *request.Request, slice urn.URN, now, expires time.Time, have []slivers.Sliver, more extended) ([]slivers.Sliver, []slivers.Extension, error) {
	var seed [8]byte
	if _, err := io.ReadFull(s.Random, seed[:]); err != nil {
		return nil, nil, fmt.Errorf("drawing a seed: %w", err)
	}
	placement, err := s.Mapper.Map(s.inService(snapshot), occupancy, req, mapping.Options{Seed: binary.LittleEndian.Uint64(seed[:]), Slice: slice})
	if err != nil {
		return nil, nil, err
	}
	nodes := map[request.ClientID]*slivers.Sliver{}
	for i := range have {
		if have[i].Node != nil {
			nodes[have[i].ClientID] = &have[i]
		}
	}
	list := make([]slivers.Sliver, 0, len(req.Nodes)+len(req.Links))
	add := func(kind slivers.Kind, id request.ClientID) (*slivers.Sliver, error) {
		name, err := s.newName(snapshot.Authority)
		if err != nil {
			return nil, err
		}
		list = append(list, slivers.Sliver{
			URN: name, Slice: slice, Kind: kind, ClientID: id, Manager: snapshot.Manager,
			Allocation: slivers.Allocated, Operational: slivers.PendingAllocation, Created: now, Expires: expires,
		})
		return &list[len(list)-1], nil
	}
	for _, n := range placement.Nodes {
		v, err := add(slivers.Node, n.Node)
		if err != nil {
			return nil, nil, err
		}
		if v.Node, err = nodeFacts(snapshot, slice, n); err != nil {
			e := refuse(Internal, "%w", err)
			e.Item = string(n.Node)
			return nil, nil, e
		}
		if _, ok := s.Drivers[v.Node.Driver]; !ok {
			e := refuse(Unsupported, "sliver type %s needs the driver %q, which is not running here", n.SliverType, v.Node.Driver)
			e.Item = string(n.Node)
			return nil, nil, e
		}
		nodes[n.Node] = v
	}
	// A link goes on without the nodes that may be taken away.
	preemptible := map[request.ClientID]bool{}
	for _, n := range req.Nodes {
		preemptible[n.ID] = n.Preemptible
	}
	links := map[request.ClientID]*request.Link{}
	for i := range req.Links {
		links[req.Links[i].ID] = &req.Links[i]
	}
	var extensions []slivers.Extension
	tunnels := tunnelPool{pool: snapshot.Pools.VNIs, taken: occupancy.VNIs, start: binary.LittleEndian.Uint64(seed[:])}
	for _, l := range placement.Links {
		old := more[l.Link]
		v := &slivers.Sliver{}
		if old == nil {
			if v, err = add(slivers.Link, l.Link); err != nil {
				return nil, nil, err
			}
		}
		v.Link = &slivers.LinkFacts{Within: l.Within, Route: l.Route, Bandwidth: l.Bandwidth, VLAN: l.VLAN, SharedVLAN: l.SharedVLAN}
		for _, e := range l.Ends {
			n := nodes[e.Node]
			if n == nil {
				return nil, nil, fmt.Errorf("link %s joins node %s, which was not placed", l.Link, e.Node)
			}
			if v.Link.Driver, err = s.linker(v.Link.Driver, n.Node.Driver); err != nil {
				e := refuse(Unsupported, "%s: %w", links[l.Link].Place, err)
				e.Item = string(l.Link)
				return nil, nil, e
			}
			v.Link.Ends = append(v.Link.Ends, slivers.End{Node: e.Node, Sliver: n.URN, Interface: e.Interface,
				Component: e.Component, Leaves: interfaceName(snapshot, n.Node.Host, e.Component), Host: n.Node.Host, Driver: n.Node.Driver,
				Loose: links[l.Link].Loose || preemptible[e.Node], Out: e.Out, In: e.In})
		}
		vni := 0
		if old != nil {
			vni = old.Link.VNI
		}
		if err := s.span(&tunnels, links[l.Link], v, vni); err != nil {
			return nil, nil, err
		}
		if err := s.checkShape(links[l.Link], v); err != nil {
			return nil, nil, err
		}
		if old == nil {
			continue
		}
		if v.Link.Driver != old.Link.Driver || v.Link.VNI != 0 && old.Link.VNI == 0 {
			e := refuse(Unsupported, "%s: link %s stands: no ends on other machines or of other drivers can be added to it", links[l.Link].Place, l.Link)
			e.Item = string(l.Link)
			return nil, nil, e
		}
		if len(l.Route) > 0 {
			e := refuse(Unsupported, "%s: link %s would have to run over wires of the testbed that carry so much and no more, and no ends can be added to it", links[l.Link].Place, l.Link)
			e.Item = string(l.Link)
			return nil, nil, e
		}
		x := slivers.Extension{Link: old.URN}
		for _, e := range v.Link.Ends {
			if !endOf(old.Link, e.Node, e.Interface) {
				e.Later = true
				x.Ends = append(x.Ends, e)
			}
		}
		if len(x.Ends) > 0 {
			extensions = append(extensions, x)
		}
	}
	return list, extensions, nil
}

func nodeFacts(snapshot *inventory.Snapshot, slice urn.URN, n mapping.NodePlacement) (*slivers.NodeFacts, error) {
	host, ok := snapshot.Host(n.Host)
	if !ok {
		return nil, fmt.Errorf("placed on %s, which is not in the inventory", n.Host)
	}
	typ, ok := snapshot.Type(n.SliverType)
	if !ok {
		return nil, fmt.Errorf("placed as %s, which is not in the inventory", n.SliverType)
	}
	f := &slivers.NodeFacts{
		Host: host.ID, HostName: host.Name, Driver: typ.Driver, SliverType: n.SliverType, Image: n.Image,
		Exclusive: n.Exclusive, Capacity: n.Capacity, Features: n.Features, Hostname: hostname(n.Node, slice, snapshot.Authority),
	}
	for i, x := range n.Interfaces {
		f.Interfaces = append(f.Interfaces, slivers.Interface{
			ID: x.ID, Component: x.Component, Device: fmt.Sprintf("eth%d", i+1), MAC: slivers.MAC(x.MAC), Addresses: x.Addresses,
		})
		if typ.WholeHost {
			ownInterface(host, &f.Interfaces[i])
		}
	}
	return f, nil
}

// ownInterface gives an interface of a node that takes its whole host the name
// and the hardware address of the host's own, which nothing changes.
func ownInterface(host *inventory.Host, i *slivers.Interface) {
	for _, own := range host.Interfaces {
		if !own.ID.Equal(i.Component) {
			continue
		}
		i.Device = own.Name
		if own.MAC != "" {
			if mac, err := net.ParseMAC(own.MAC); err == nil {
				i.MAC = slivers.MAC(mac)
			}
		}
	}
}

// hostname is the name a node calls itself: node.slice.authority, as Emulab
// names nodes, cut to what a host name may be.
func hostname(node request.ClientID, slice urn.URN, authority urn.Authority) string {
	const most = 63 // of a host name in Linux, less than its limit of 64
	short := label(string(node))
	long := short + "." + label(slice.Name) + "." + label(string(authority.Top()))
	if len(long) > most {
		return short
	}
	return long
}

// label makes a DNS label (RFC 1123), or with its dots kept several, out of a
// name.
func label(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	s := strings.Trim(b.String(), "-.")
	if len(s) > 40 {
		s = strings.Trim(s[:40], "-.")
	}
	if s == "" {
		return "node"
	}
	return s
}

// newName draws a sliver URN that was never used and never will be.
func (s *Service) newName(authority urn.Authority) (urn.URN, error) {
	var b [12]byte
	if _, err := io.ReadFull(s.Random, b[:]); err != nil {
		return urn.URN{}, fmt.Errorf("drawing a sliver name: %w", err)
	}
	name := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
	return urn.New(authority, urn.Sliver, name)
}

// leaseFor decides when new slivers expire: when the caller asks, at most at
// the end of the caller's credential and of what the site gives. An option may
// be shortened without failing (AM API v3, geni_end_time).
func (s *Service) leaseFor(now, credential, asked time.Time, usual, most time.Duration) (time.Time, error) {
	end := now.Add(usual)
	if !asked.IsZero() {
		if !asked.After(now) {
			return time.Time{}, refuse(BadArgs, "geni_end_time %s is not in the future", asked.Format(time.RFC3339))
		}
		end = asked
	}
	if limit := now.Add(most); end.After(limit) {
		end = limit
	}
	if end.After(credential) {
		end = credential
	}
	return end.UTC().Truncate(time.Second), nil
}

// imageSource says where the driver finds an image.
func imageSource(snapshot *inventory.Snapshot, image urn.URN) string {
	for _, i := range snapshot.Images {
		if i.ID.Equal(image) {
			return i.Source
		}
	}
	return ""
}

// driverNode is a node sliver as its driver wants it.
func driverNode(snapshot *inventory.Snapshot, v *slivers.Sliver) drivers.Node {
	n := drivers.Node{
		Sliver: v.URN, Slice: v.Slice, Host: v.Node.Host, SliverType: v.Node.SliverType, Hostname: v.Node.Hostname,
		Image: imageSource(snapshot, v.Node.Image), Capacity: v.Node.Capacity, Users: v.Node.Users,
	}
	for _, i := range v.Node.Interfaces {
		n.Interfaces = append(n.Interfaces, drivers.Interface{
			Name: i.ID, Device: i.Device, MAC: []byte(i.MAC), Addresses: i.Addresses, Component: i.Component,
		})
	}
	return n
}
