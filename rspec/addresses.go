package rspec

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"

	"github.com/beevik/etree"
)

// Prefix lengths of addresses whose element has no netmask: Emulab's for IPv4.
const (
	defaultBits4 = 24
	defaultBits6 = 64
)

// address reads an ip element.
func (c *compiler) address(e *etree.Element) (netip.Prefix, bool) {
	text, mask, typ := attr(e, "address"), attr(e, "netmask"), strings.ToLower(attr(e, "type"))
	if text == "" {
		c.fail(e, "ip without an address", `write <ip address="10.10.1.1" netmask="255.255.255.0" type="ipv4"/>, or leave the element out`)
		return netip.Prefix{}, false
	}
	if a, length, ok := strings.Cut(text, "/"); ok {
		text = a
		if mask == "" {
			mask = length
		}
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		c.fail(e, fmt.Sprintf("address %q is not an IP address", text), "write one such as 10.10.1.1")
		return netip.Prefix{}, false
	}
	a = a.Unmap()
	if a.IsUnspecified() {
		c.warn(e, fmt.Sprintf("address %s is read as none", a), "leave the element out")
		return netip.Prefix{}, false
	}
	if typ == "ipv4" && !a.Is4() || typ == "ipv6" && !a.Is6() {
		c.fail(e, fmt.Sprintf("address %s is not of type %s", a, typ), "correct one of the two")
		return netip.Prefix{}, false
	}
	if typ != "" && typ != "ipv4" && typ != "ipv6" {
		c.warn(e, fmt.Sprintf("type=%q of an address is passed over", typ), "it is ipv4 or ipv6")
	}
	length := defaultBits4
	if a.Is6() {
		length = defaultBits6
	}
	switch {
	case mask == "":
		c.warn(e, fmt.Sprintf("no netmask: taken as /%d", length), "add netmask")
	case mask == "0.0.0.0" || mask == "0":
		c.warn(e, fmt.Sprintf("netmask %s: taken as /%d", mask, length), "write the mask of the link's network")
	default:
		n, ok := maskBits(mask, a)
		if !ok {
			c.fail(e, fmt.Sprintf("netmask %q of %s", mask, a), "write one such as 255.255.255.0: ones, then zeros")
			return netip.Prefix{}, false
		}
		length = n
	}
	p := netip.PrefixFrom(a, length)
	if what := unusable(p); what != "" {
		c.fail(e, fmt.Sprintf("address %s %s", p, what), "give the interface an address of a host in its network")
		return netip.Prefix{}, false
	}
	return p, true
}

// maskBits reads a netmask in any of the ways it is written: 255.255.255.0,
// 24, /24.
func maskBits(mask string, a netip.Addr) (int, bool) {
	if n, err := strconv.Atoi(strings.TrimPrefix(mask, "/")); err == nil {
		return n, n > 0 && n <= a.BitLen()
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || m.BitLen() != a.BitLen() {
		return 0, false
	}
	n, ones := 0, true
	for _, b := range m.AsSlice() {
		lead := bits.LeadingZeros8(^b)
		if !ones && b != 0 || b<<lead != 0 {
			return 0, false
		}
		n += lead
		ones = ones && lead == 8
	}
	return n, n > 0
}

// unusable says why an interface cannot have an address; "" if it can.
func unusable(p netip.Prefix) string {
	a := p.Addr()
	switch {
	case a.IsLoopback():
		return "is a loopback address"
	case a.IsMulticast():
		return "is a multicast address"
	case a.Is6() || p.Bits() > 30:
		return ""
	case a == p.Masked().Addr():
		return "is the network itself, outside of what its mask leaves for hosts"
	case a == broadcast(p):
		return "is the broadcast address, outside of what its mask leaves for hosts"
	}
	return ""
}

// broadcast is the last address of an IPv4 network.
func broadcast(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	n := binary.BigEndian.Uint32(b[:]) | (1<<(32-p.Bits()) - 1)
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}
