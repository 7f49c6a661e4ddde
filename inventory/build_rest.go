package inventory

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
)

var numberRange = regexp.MustCompile(`^([0-9]+)(?:-([0-9]+))?$`)

func (b *builder) buildRest() {
	seen := map[string]bool{}
	for _, d := range b.decl.sharedVLANs.value {
		name := d.it.name.value.text
		if seen[name] {
			b.add(d.it.name.at, d.it.name.path, fmt.Sprintf("a second shared VLAN %q", name), "")
			continue
		}
		seen[name] = true
		b.snapshot.SharedVLANs = append(b.snapshot.SharedVLANs, SharedVLAN{
			Name: name, Tag: int(d.it.tag.value), Restricted: d.it.restricted.value, Authorities: authorities(d.it.authorities),
		})
	}
	for _, d := range b.decl.external.value {
		b.snapshot.External = append(b.snapshot.External, External{Interface: d.it.iface.value, Manager: d.it.manager.value})
	}
	b.snapshot.Pools.Addresses = DefaultAddresses
	pools := b.decl.pools.value.it
	if f := pools.addresses; f.valid {
		network, err := netip.ParsePrefix(f.value.text)
		switch {
		case err != nil:
			b.add(f.at, f.path, fmt.Sprintf("%q is no network", f.value.text), "such as "+DefaultAddresses)
		case network != network.Masked():
			b.add(f.at, f.path, fmt.Sprintf("%s is an address in a network", network), "write the network: "+network.Masked().String())
		case network.Addr().BitLen()-network.Bits() < 3:
			b.add(f.at, f.path, fmt.Sprintf("%s is too small for links", network), "such as "+DefaultAddresses)
		default:
			b.snapshot.Pools.Addresses = network.String()
		}
	}
	for _, w := range pools.vlans.value {
		first, last := numbers(w.text)
		if first < 1 || last > 4094 || last < first {
			b.add(w.at, w.path, fmt.Sprintf("%q are no VLAN tags", w.text), "from 1 to 4094, the lower first, such as 100-199")
			continue
		}
		b.snapshot.Pools.VLANs = append(b.snapshot.Pools.VLANs, VLANRange{first, last})
	}
	for _, w := range pools.vnis.value {
		first, last := numbers(w.text)
		if first < 1 || last > 1<<24-1 || last < first {
			b.add(w.at, w.path, fmt.Sprintf("%q are no VXLAN identifiers", w.text), "from 1 to 16777215, the lower first, such as 5000-5999")
			continue
		}
		b.snapshot.Pools.VNIs = append(b.snapshot.Pools.VNIs, VNIRange{first, last})
	}
	if len(pools.vnis.value) == 0 {
		b.snapshot.Pools.VNIs = []VNIRange{DefaultVNIs}
	}
}

// numbers reads a number or a range of them; 0, 0 of anything else.
func numbers(text string) (first, last int) {
	m := numberRange.FindStringSubmatch(text)
	if m == nil {
		return 0, 0
	}
	first, _ = strconv.Atoi(m[1])
	if last = first; m[2] != "" {
		last, _ = strconv.Atoi(m[2])
	}
	return first, last
}
