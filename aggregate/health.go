package aggregate

import (
	"slices"
	"strings"

	"croft/drivers"
	"croft/inventory"
	"croft/urn"
)

// Ailing lists, for the operator, the hosts that their drivers have found out
// of order, in the order of their names. They take no new nodes.
func (s *Service) Ailing() []drivers.Ailing {
	var list []drivers.Ailing
	for _, d := range s.Drivers {
		if teller, ok := d.(drivers.HealthTeller); ok {
			list = append(list, teller.Health()...)
		}
	}
	slices.SortFunc(list, func(a, b drivers.Ailing) int { return strings.Compare(a.Host.String(), b.Host.String()) })
	return list
}

// closed tells which hosts, by canonical URN, take no new nodes though the
// inventory has them in service, and why.
func (s *Service) closed() map[urn.URN]string {
	why := reasons(s.Ailing())
	for _, d := range s.drains.list() {
		why[d.Host.Canonical()] = drainedBecause(d)
	}
	return why
}

// inService is the inventory as it is to be mapped on: hosts that take no new
// nodes now are out of service.
func (s *Service) inService(snapshot *inventory.Snapshot) *inventory.Snapshot {
	why := s.closed()
	if len(why) == 0 {
		return snapshot
	}
	changed := *snapshot
	changed.Hosts = slices.Clone(snapshot.Hosts)
	for i := range changed.Hosts {
		h := &changed.Hosts[i]
		if reason, closed := why[h.ID.Canonical()]; closed && h.OutOfService == "" {
			h.OutOfService = reason
		}
	}
	return &changed
}

// reasons says of canonical URNs of hosts what is wrong with them.
func reasons(ailing []drivers.Ailing) map[urn.URN]string {
	why := make(map[urn.URN]string, len(ailing))
	for _, a := range ailing {
		why[a.Host.Canonical()] = a.Reason
	}
	return why
}

// namesOf are some hosts, as one text that tells sets apart.
func namesOf(hosts map[urn.URN]string) string {
	var names []string
	for h := range hosts {
		names = append(names, h.String())
	}
	slices.Sort(names)
	return strings.Join(names, "\n")
}
