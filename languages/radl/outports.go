package radl

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// outport is a port, or a range of them, that is to be reached from outside.
type outport struct {
	from     string // CIDR of those who may; "" for all
	first    int    // as others reach it
	last     int    // the same as first, if it is not a range
	local    int    // on the machine; the same as first, if it is not mapped
	protocol string // tcp, udp or icmp
}

const outportsHint = "want such as 22, 8080/tcp, 9000:9100/udp, 8899-22 or 10.0.0.0/8-80/tcp, with commas between them"

// parseOutports reads a list of ports:
// [CIDR-]PORT[:PORT][/PROTOCOL][-PORT[/PROTOCOL]].
func parseOutports(text string) (ports []outport, what, hint string) {
	for _, part := range strings.Split(text, ",") {
		p, what := parseOutport(part)
		if what != "" {
			return nil, what, outportsHint
		}
		ports = append(ports, p)
	}
	return ports, "", ""
}

func parseOutport(part string) (outport, string) {
	var p outport
	bad := fmt.Sprintf("%q names no port", shorten(part))
	rest := part
	if slash := strings.IndexByte(rest, '/'); strings.Count(rest, ".") == 3 && slash > strings.LastIndexByte(rest, '.') {
		cidr, after, ok := strings.Cut(rest, "-")
		if _, err := netip.ParsePrefix(cidr); !ok || err != nil {
			return p, fmt.Sprintf("%q begins with no network", shorten(part))
		}
		p.from, rest = cidr, after
	}
	remote, local, mapped := strings.Cut(rest, "-")
	remote, protocol, named := strings.Cut(remote, "/")
	p.protocol = "tcp"
	if named {
		p.protocol = protocol
	}
	low, high, isRange := strings.Cut(remote, ":")
	var ok bool
	if p.first, ok = port(low); !ok {
		return p, bad
	}
	p.last, p.local = p.first, p.first
	if isRange {
		if p.last, ok = port(high); !ok {
			return p, bad
		}
	}
	if mapped {
		if isRange {
			return p, fmt.Sprintf("%q: a range cannot be mapped", shorten(part))
		}
		number, to, named := strings.Cut(local, "/")
		if p.local, ok = port(number); !ok {
			return p, bad
		}
		if named && to != p.protocol {
			return p, fmt.Sprintf("%q: two protocols", shorten(part))
		}
	}
	switch p.protocol {
	case "tcp", "udp", "icmp":
		return p, ""
	}
	return p, fmt.Sprintf("%q: the protocol is none of tcp, udp, icmp", shorten(part))
}

func port(s string) (int, bool) {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= 65535
}
