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

// inService is the inventory as it is to be mapped on: hosts that are out of
// order now are out of service.
func (s *Service) inService(snapshot *inventory.Snapshot) *inventory.Snapshot {
	ailing := s.Ailing()
	if len(ailing) == 0 {
		return snapshot
	}
	why := reasons(ailing)
	changed := *snapshot
	changed.Hosts = slices.Clone(snapshot.Hosts)
	for i := range changed.Hosts {
		h := &changed.Hosts[i]
		if reason, ill := why[h.ID.Canonical()]; ill && h.OutOfService == "" {
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

// namesOf are the hosts of a list, as one text that tells lists apart.
func namesOf(ailing []drivers.Ailing) string {
	var names []string
	for _, a := range ailing {
		names = append(names, a.Host.Canonical().String())
	}
	return strings.Join(names, "\n")
}
