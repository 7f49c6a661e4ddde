package mapping

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"strings"

	"croft/request"
)

// assignMACs gives every interface a hardware address: the one asked for, else
// one made of the seed, the slice and the names of node and interface. Those
// are unicast and locally administered; of 46 bits, so that two of an aggregate
// are the same once in many lifetimes.
func assignMACs(req *request.Request, options Options, p *Placement) *Refusal {
	taken := map[string]bool{}
	for i := range req.Nodes {
		for j := range req.Nodes[i].Interfaces {
			f := &req.Nodes[i].Interfaces[j]
			if f.MAC == "" {
				continue
			}
			refuse := func(why string) *Refusal {
				return &Refusal{Kind: Contradicts, Item: req.Nodes[i].ID, Place: f.Place, Why: why, Hint: "leave mac_address out to have one assigned"}
			}
			mac, ok := parseMAC(f.MAC)
			switch {
			case !ok:
				return refuse(fmt.Sprintf("interface %s asks for %q, which is no MAC address", f.ID, f.MAC))
			case mac[0]&1 != 0:
				return refuse(fmt.Sprintf("interface %s asks for %s, the address of a group", f.ID, mac))
			case taken[string(mac)]:
				return refuse(fmt.Sprintf("interface %s asks for %s, as another one does", f.ID, mac))
			}
			taken[string(mac)] = true
			p.Nodes[i].Interfaces[j].MAC = mac
		}
	}
	for i := range req.Nodes {
		for j := range req.Nodes[i].Interfaces {
			f := &p.Nodes[i].Interfaces[j]
			for attempt := uint64(0); f.MAC == nil; attempt++ {
				mac := madeMAC(options, req.Nodes[i].ID, f.ID, attempt)
				if !taken[string(mac)] {
					taken[string(mac)] = true
					f.MAC = mac
				}
			}
		}
	}
	return nil
}

// parseMAC reads the usual forms and, as Emulab writes them, twelve digits.
func parseMAC(s string) (net.HardwareAddr, bool) {
	s = strings.TrimSpace(s)
	if len(s) == 12 && !strings.ContainsAny(s, ":-.") {
		s = s[:4] + "." + s[4:8] + "." + s[8:]
	}
	mac, err := net.ParseMAC(s)
	return mac, err == nil && len(mac) == 6
}

func madeMAC(options Options, node, iface request.ClientID, attempt uint64) net.HardwareAddr {
	var number [16]byte
	binary.BigEndian.PutUint64(number[:8], options.Seed)
	binary.BigEndian.PutUint64(number[8:], attempt)
	h := sha256.New()
	h.Write(number[:])
	for _, part := range []string{options.Slice.Canonical().String(), string(node), string(iface)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	mac := net.HardwareAddr(h.Sum(nil)[:6])
	mac[0] = mac[0]&^1 | 2
	return mac
}
