package aggregate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"croft/capacity"
	"croft/inventory"
	"croft/slivers"
	"croft/urn"
)

// Stray is a host with nodes that the inventory, having changed under them,
// has no place for any more. They keep it until their leases end; it takes no
// new ones.
type Stray struct {
	Host    urn.URN
	Why     string
	Slivers []slivers.Sliver
}

// Slices are those that the nodes belong to.
func (s Stray) Slices() []string {
	var names []string
	for _, v := range s.Slivers {
		if name := v.Slice.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Until is when the last of the leases ends.
func (s Stray) Until() time.Time {
	var last time.Time
	for _, v := range s.Slivers {
		if v.Expires.After(last) {
			last = v.Expires
		}
	}
	return last
}

// Strays lists, for the operator, the hosts that have gone from the inventory,
// or shrunk in it, under nodes that are on them.
func (s *Service) Strays(ctx context.Context) ([]Stray, error) {
	all, err := s.Store.All(ctx)
	if err != nil {
		return nil, fail("list strays", nil, err)
	}
	snapshot, occupancy := s.Inventory(), s.Store.Occupancy()
	on := map[urn.URN][]slivers.Sliver{}
	for _, v := range all {
		if v.Node != nil {
			k := v.Node.Host.Canonical()
			on[k] = append(on[k], v)
		}
	}
	var list []Stray
	for host, nodes := range on {
		if why := stray(snapshot, host, len(nodes), occupancy.Hosts[host].Amount); why != "" {
			list = append(list, Stray{Host: nodes[0].Node.Host, Why: why, Slivers: nodes})
		}
	}
	slices.SortFunc(list, func(a, b Stray) int { return strings.Compare(a.Host.String(), b.Host.String()) })
	return list, nil
}

// stray tells why the inventory has no place for what is on a host; "" if it
// has.
func stray(snapshot *inventory.Snapshot, host urn.URN, nodes int, taken capacity.Amount) string {
	h, ok := snapshot.Host(host)
	if !ok {
		return "it is not in the inventory"
	}
	if h.MaxSlivers > 0 && nodes > h.MaxSlivers {
		return fmt.Sprintf("it holds %d nodes of %d", nodes, h.MaxSlivers)
	}
	// What is not counted cannot be too little.
	if !taken.Fits(h.Capacity.Or(taken)) {
		return fmt.Sprintf("%s are taken of %s", taken, h.Capacity)
	}
	return ""
}
