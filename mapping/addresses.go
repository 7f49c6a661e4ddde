package mapping

import (
	"cmp"
	"fmt"
	"math/bits"
	"net/netip"

	"croft/inventory"
)

// Subnets that links are given: a /24 of the pool, so that addresses read
// 10.10.LINK.NUMBER as Emulab writes them.
const (
	usualBits4 = 24
	usualBits6 = 64
)

// assignAddresses gives every interface of the request that a link joins and
// that has no address one in the subnet of its link: that of the addresses
// which the link has already, else one of the pool that nobody in the request
// or in the slice uses. What the request gives stays as it is.
func assignAddresses(pool string, links *linkage, p *Placement) *Refusal {
	network, err := netip.ParsePrefix(cmp.Or(pool, inventory.DefaultAddresses))
	if err != nil {
		return &Refusal{Kind: Impossible, Why: fmt.Sprintf("the inventory's pool of addresses, %q, is no network", pool)}
	}
	a := addressing{links: links, placement: p, pool: network.Masked(), taken: map[netip.Addr]bool{}}
	a.collect()
	usual := usualBits4
	if a.pool.Addr().Is6() {
		usual = usualBits6
	}
	// With more links than usual subnets, each gets one that is just large
	// enough.
	subnets, ok := a.subnets(usual)
	if !ok {
		if subnets, ok = a.subnets(a.pool.Addr().BitLen()); !ok {
			return &Refusal{Kind: Full, Why: fmt.Sprintf("no subnets are left in %s for %s", a.pool, plural(len(a.open), "link")),
				Hint: "give the interfaces addresses"}
		}
	}
	for i := range links.ends {
		if subnet := subnets[i]; subnet.IsValid() {
			if r := a.number(i, subnet); r != nil {
				return r
			}
		}
	}
	return nil
}

// addressing is the addresses of one request in the making.
type addressing struct {
	links     *linkage
	placement *Placement
	pool      netip.Prefix
	used      []netip.Prefix      // subnets of addresses that are given
	taken     map[netip.Addr]bool // addresses that are given
	own       map[int]netip.Prefix
	open      []int // links that need a subnet of the pool
}

// addresses of an end.
func (a *addressing) of(e endpoint) []netip.Prefix {
	if e.node >= 0 {
		return a.placement.Nodes[e.node].Interfaces[e.iface].Addresses
	}
	return a.links.existing[e.existing].Interfaces[e.iface].Addresses
}

// collect notes what is taken, and which links need what.
func (a *addressing) collect() {
	a.own = map[int]netip.Prefix{}
	note := func(list []netip.Prefix) {
		for _, p := range list {
			a.taken[p.Addr()] = true
			a.used = append(a.used, p.Masked())
		}
	}
	for _, n := range a.placement.Nodes {
		for _, f := range n.Interfaces {
			note(f.Addresses)
		}
	}
	for _, n := range a.links.existing {
		for _, f := range n.Interfaces {
			note(f.Addresses)
		}
	}
	for i, ends := range a.links.ends {
		lacking := false
		for _, e := range ends {
			list := a.of(e)
			lacking = lacking || (e.node >= 0 && len(list) == 0)
			for _, p := range list {
				if _, known := a.own[i]; !known && !p.IsSingleIP() {
					a.own[i] = p.Masked()
				}
			}
		}
		if _, known := a.own[i]; !lacking {
			delete(a.own, i)
		} else if !known {
			a.open = append(a.open, i)
		}
	}
}

// subnets finds a subnet for every link that needs addresses; the zero Prefix
// for others. Those of the pool have the given length, or are as large as the
// link needs.
func (a *addressing) subnets(length int) ([]netip.Prefix, bool) {
	all := make([]netip.Prefix, len(a.links.ends))
	for i, p := range a.own {
		all[i] = p
	}
	blocks := map[int]*blocks{}
	for _, i := range a.open {
		// Two addresses name the subnet and everybody in it.
		need := a.pool.Addr().BitLen() - bits.Len(uint(len(a.links.ends[i])+1))
		size := max(min(length, need), a.pool.Bits())
		b := blocks[size]
		if b == nil {
			b = newBlocks(a.pool, size)
			for _, p := range a.used {
				b.take(p)
			}
			for _, p := range all {
				b.take(p)
			}
			blocks[size] = b
		}
		p, ok := b.find(i + 1)
		if !ok || need < a.pool.Bits() {
			return nil, false
		}
		all[i] = p
		for _, other := range blocks {
			other.take(p)
		}
	}
	return all, true
}

// number gives addresses to the ends of a link that have none.
func (a *addressing) number(link int, subnet netip.Prefix) *Refusal {
	first, last := subnet.Addr(), lastOf(subnet)
	if subnet.Addr().BitLen()-subnet.Bits() > 1 { // not a point-to-point /31
		first = first.Next()
		if subnet.Addr().Is4() {
			last = last.Prev()
		}
	}
	next := first
	for _, e := range a.links.ends[link] {
		if e.node < 0 || len(a.of(e)) > 0 {
			continue
		}
		for next.IsValid() && !last.Less(next) && a.taken[next] {
			next = next.Next()
		}
		f := &a.placement.Nodes[e.node].Interfaces[e.iface]
		if !next.IsValid() || last.Less(next) {
			l := &a.links.req.Links[link]
			return &Refusal{Kind: Full, Item: l.ID, Place: l.Place,
				Why:  fmt.Sprintf("no address of %s is left for interface %s", subnet, f.ID),
				Hint: "give the interface an address, or the link a larger network"}
		}
		a.taken[next] = true
		f.Addresses = []netip.Prefix{netip.PrefixFrom(next, subnet.Bits())}
	}
	return nil
}

// blocks are the subnets of one size in a pool.
type blocks struct {
	pool  netip.Prefix
	bits  int
	taken []bool
}

// maxBlocks bounds how many subnets are kept an eye on; no request has as many
// links.
const maxBlocks = 1 << 20

func newBlocks(pool netip.Prefix, bits int) *blocks {
	count := maxBlocks
	if spread := bits - pool.Bits(); spread < 20 {
		count = 1 << spread
	}
	return &blocks{pool, bits, make([]bool, count)}
}

// take marks the blocks that a prefix overlaps.
func (b *blocks) take(p netip.Prefix) {
	if !p.IsValid() || !p.Overlaps(b.pool) {
		return
	}
	first, last := 0, len(b.taken)-1
	if p.Bits() > b.pool.Bits() {
		first = b.index(p.Addr())
		last = min(last, b.index(lastOf(p)))
	}
	for i := first; i <= last; i++ {
		b.taken[i] = true
	}
}

// find takes the first free block from number from on, then from the start.
// Block 0 comes last: 10.10.0.1 looks like a mistake.
func (b *blocks) find(from int) (netip.Prefix, bool) {
	for k := range b.taken {
		i := (from + k) % len(b.taken)
		if i == 0 && len(b.taken) > 1 && k < len(b.taken)-1 {
			continue
		}
		if !b.taken[i] {
			return b.at(i), true
		}
	}
	if !b.taken[0] {
		return b.at(0), true
	}
	return netip.Prefix{}, false
}

// words splits an address into two numbers.
func words(a netip.Addr) (high, low uint64) {
	raw := a.As16()
	for i := range 8 {
		high = high<<8 | uint64(raw[i])
		low = low<<8 | uint64(raw[i+8])
	}
	return high, low
}

// index is the number of the block that holds an address of the pool.
func (b *blocks) index(a netip.Addr) int {
	high, low := words(a)
	baseHigh, baseLow := words(b.pool.Addr())
	low, borrow := bits.Sub64(low, baseLow, 0)
	high, _ = bits.Sub64(high, baseHigh, borrow)
	shift := a.BitLen() - b.bits
	var n uint64
	if shift >= 64 {
		n = high >> (shift - 64)
	} else {
		n = low>>shift | high<<(64-shift)
	}
	return int(min(n, uint64(len(b.taken))))
}

// at is the block of that number.
func (b *blocks) at(i int) netip.Prefix {
	shift := b.pool.Addr().BitLen() - b.bits
	var addHigh, addLow uint64
	if shift >= 64 {
		addHigh = uint64(i) << (shift - 64)
	} else {
		addLow = uint64(i) << shift
		addHigh = uint64(i) >> (64 - shift)
	}
	high, low := words(b.pool.Addr())
	low, carry := bits.Add64(low, addLow, 0)
	high, _ = bits.Add64(high, addHigh, carry)
	return netip.PrefixFrom(join(b.pool.Addr().Is4(), high, low), b.bits)
}

func join(is4 bool, high, low uint64) netip.Addr {
	var raw [16]byte
	for i := range 8 {
		raw[i] = byte(high >> (56 - 8*i))
		raw[i+8] = byte(low >> (56 - 8*i))
	}
	a := netip.AddrFrom16(raw)
	if is4 {
		return a.Unmap()
	}
	return a
}

// lastOf is the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	high, low := words(p.Masked().Addr())
	host := p.Addr().BitLen() - p.Bits()
	switch {
	case host >= 128:
		high, low = ^uint64(0), ^uint64(0)
	case host > 64:
		high, low = high|(1<<(host-64)-1), ^uint64(0)
	case host == 64:
		low = ^uint64(0)
	default:
		low |= 1<<host - 1
	}
	return join(p.Addr().Is4(), high, low)
}
