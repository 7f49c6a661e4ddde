package am_test

import (
	"fmt"
	"strings"
	"testing"
)

const switchedInventory = `
authority: example.org
sliver_types: [{name: simulated, driver: simulated}]
hosts: [{name: "pc[1-6]", sliver_types: simulated, interfaces: [{name: eth1, speed: 1 Gbps}]}]
switches: [{name: sw1}]
cables: [{hosts: "pc[1-6]", interfaces: eth1, switch: sw1}]
pools: {vlans: [100-102]}
`

// TestVLANUnavailable asks for VLAN tags that cannot be had, by both APIs.
func TestVLANUnavailable(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{inventory: switchedInventory})
	link := func(tag int) string {
		return strings.NewReplacer(`exclusive="false"`, `exclusive="true"`, "</rspec>",
			fmt.Sprintf(`<link client_id="l" vlantag="%d"><interface_ref client_id="a:if0"/><interface_ref client_id="b:if0"/></link></rspec>`, tag)).Replace(nodes("a", "b"))
	}
	u := b.as("alice", "/am/3.0")
	slice, creds := u.slice("tags")
	manifest := u.want(0, "Allocate", slice, creds, link(101), m{}).value.(m)["geni_rspec"].(string)
	if !strings.Contains(manifest, `vlantag="101"`) {
		t.Errorf("another tag was given:\n%s", manifest)
	}
	old := b.as("bob", "/am/2.0")
	second, theirs := old.slice("tags2")
	for _, r := range []reply{
		old.want(24, "CreateSliver", second, theirs, link(101), []any{}, m{}),
		old.want(24, "CreateSliver", second, theirs, link(99), []any{}, m{}),
		u.want(24, "Allocate", slice, creds, strings.NewReplacer(`"a`, `"c`, `"b`, `"d`, `"l"`, `"k"`).Replace(link(101)), m{}),
	} {
		if !strings.Contains(r.output, "100, 102 are free") {
			t.Errorf("says %q, and not which are free", r.output)
		}
	}
}
