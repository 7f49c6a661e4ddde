package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestMapDelays asks for links that only delay nodes can give.
func TestMapDelays(t *testing.T) {
	t.Setenv("CROFT_DIR", t.TempDir())
	inventory := filepath.Join("..", "..", "testdata", "mapping", "delays.yaml")
	property := func(from, to, what string) string {
		return fmt.Sprintf(`<property source_id=%q dest_id=%q %s/>`, from, to, what)
	}
	pair := pc("x", 1) + pc("y", 1)
	three := pair + pc("z", 1)
	for _, c := range []struct {
		name    string
		request string
		delays  string // hosts of delay nodes; "a|b" is either
		shapes  string // what the ends do, in order of the links
		refused string
	}{
		{name: "a latency", request: pair + wire("l", property("x:0", "y:0", `latency="10"`), "x:0", "y:0"),
			delays: "sa1|sa2|sb1|sb2", shapes: "l~delay0:1 10 ms"},
		{name: "each direction its own", request: pair + wire("l", property("x:0", "y:0", `capacity="10000" latency="10"`)+property("y:0", "x:0", `packet_loss="2"`), "x:0", "y:0"),
			delays: "sa1|sa2|sb1|sb2", shapes: "l~delay0:0 2 % lost; l~delay0:1 10000 kbit/s 10 ms"},
		{name: "a capacity below the line", request: pair + wire("l", property("x:0", "y:0", `capacity="1234"`), "x:0", "y:0"),
			delays: "sa1|sa2|sb1|sb2", shapes: "l~delay0:1 1234 kbit/s"},
		{name: "the rate of the line", request: pair + wire("l", property("x:0", "y:0", `capacity="1000000"`)+property("y:0", "x:0", `capacity="1000000"`), "x:0", "y:0")},
		{name: "near the nodes", request: strings.Replace(pair, `client_id="x"`, `client_id="x" component_id="urn:publicid:IDN+campus.example.org+node+b1"`, 1) +
			wire("l", "<e:interswitch allow=\"no\"/>"+property("x:0", "y:0", `latency="10"`), "x:0", "y:0"),
			delays: "sb1|sb2", shapes: "l~delay0:1 10 ms"},
		{name: "one member of a LAN", request: three + wire("l", property("x:0", "y:0", `latency="5"`)+property("x:0", "z:0", `latency="5"`), "x:0", "y:0", "z:0"),
			delays: "sa1|sa2|sb1|sb2", shapes: "l~delay0:0 5 ms"},
		{name: "all members of a LAN", request: three + wire("l", property("", "", `latency="5"`), "x:0", "y:0", "z:0"),
			delays: "sa1|sa2|sb1|sb2 sa1|sa2|sb1|sb2 sa1|sa2|sb1|sb2", shapes: "l~delay0:0 5 ms; l~delay1:0 5 ms; l~delay2:0 5 ms"},
		{name: "as many as there are", request: pc("x", 2) + pc("y", 2) + pc("z", 2) +
			wire("l", property("x:0", "y:0", `latency="1"`), "x:0", "y:0") + wire("m", property("y:1", "z:1", `latency="2"`), "y:1", "z:1") + wire("n", property("z:0", "x:1", `latency="3"`), "z:0", "x:1"),
			delays: "sa1|sa2|sb1|sb2 sa1|sa2|sb1|sb2 sa1|sa2|sb1|sb2", shapes: "l~delay0:1 1 ms; m~delay0:1 2 ms; n~delay0:1 3 ms"},
		{name: "more than there are", request: pc("x", 2) + pc("y", 2) + pc("z", 1) + pc("u", 2) + pc("v", 2) + pc("w", 1) +
			wire("k", property("x:0", "u:0", `latency="1"`), "x:0", "u:0") + wire("l", property("y:0", "v:0", `latency="1"`), "y:0", "v:0") +
			wire("m", property("z:0", "w:0", `latency="1"`), "z:0", "w:0") + wire("n", property("x:1", "v:1", `latency="1"`), "x:1", "v:1") +
			wire("o", property("y:1", "u:1", `latency="1"`), "y:1", "u:1"),
			refused: "o: needs a delay node between its ends"},
		{name: "wanted by itself", request: made("delay", "d", 0), delays: ""},
		{name: "not by chance", request: `<node client_id="n"/>` + `<node client_id="n2"/>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			document := `<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3" xmlns:e="http://www.protogeni.net/resources/rspec/ext/emulab/1">` + c.request + "</rspec>"
			out, errs, status := run(t, document, "map", inventory, "-", "--json", "--explain")
			var answer mapped
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatalf("%v\n%s%s", err, out, errs)
			}
			if c.refused != "" {
				if status == 0 || !strings.Contains(errs, c.refused) || strings.Contains(errs, "~") {
					t.Errorf("status %d, %s\nwant %s", status, errs, c.refused)
				}
				return
			}
			if status != 0 {
				t.Fatal(errs)
			}
			var hosts, shapes []string
			for _, n := range answer.Placement.Nodes {
				if n.Delays != "" {
					hosts = append(hosts, n.Host.Name)
				} else if n.SliverType == "delay" && n.Node != "d" {
					t.Errorf("node %s is made as a delay node", n.Node)
				}
			}
			want := strings.Fields(c.delays)
			if len(hosts) != len(want) {
				t.Fatalf("delay nodes on %v, want %v", hosts, want)
			}
			for i := range want {
				if !contains(strings.Split(want[i], "|"), hosts[i]) {
					t.Errorf("delay node on %s, want %s", hosts[i], want[i])
				}
			}
			for _, l := range answer.Placement.Links {
				for _, e := range l.Ends {
					if s := shapeOf(e.Out); s != "" {
						shapes = append(shapes, string(e.Interface)+" "+s)
					}
				}
			}
			if got := strings.Join(shapes, "; "); !sameWords(got, c.shapes) {
				t.Errorf("ends do %s, want %s", got, c.shapes)
			}
			text, _, _ := run(t, document, "map", inventory, "-")
			if len(want) > 0 && !strings.Contains(text, "put in, a delay node of ") {
				t.Errorf("nobody is told of the delay node:\n%s", text)
			}
		})
	}
}

// sameWords compares lists without their order.
func sameWords(a, b string) bool {
	x, y := strings.Split(a, "; "), strings.Split(b, "; ")
	for _, s := range x {
		if !contains(y, s) {
			return false
		}
	}
	return len(x) == len(y)
}
