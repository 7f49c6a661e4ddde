package config

import (
	"fmt"
	"net/netip"
)

// Between says how links leave a machine whose nodes are namespaces or
// containers.
type Between struct {
	// Underlay is the machine's IP address in the network between the machines,
	// by which links to other machines go in VXLAN; "" for none.
	Underlay string `yaml:"underlay"`
	// Uplinks are interfaces of the machine, named as in the inventory, that go
	// to the testbed's switches: links leave by them with VLAN tags.
	Uplinks []string `yaml:"uplinks"`
}

// UnderlayAddress is Underlay parsed; zero if there is none.
func (b Between) UnderlayAddress() netip.Addr {
	a, err := netip.ParseAddr(b.Underlay)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}

func (v *validator) between(field string, b Between) {
	a, err := netip.ParseAddr(b.Underlay)
	if b.Underlay != "" && (err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast()) {
		v.fail(field+".underlay", "%q is no IP address of a machine", b.Underlay)
	}
	for i, name := range b.Uplinks {
		const longest = 15 // IFNAMSIZ without its zero
		if name == "" || len(name) > longest {
			v.fail(fmt.Sprintf("%s.uplinks[%d]", field, i), "%q is no name of an interface", name)
		}
	}
}
