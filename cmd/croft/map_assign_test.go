package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a testbed with something for every directive and flag of assign's.
const small = `node core switch:1 *lan:* - real-switch:0 -
node leaf switch:1 *lan:* - real-switch:0 -
node a pc:1 pc850:1 pcvm:3 *lan:* - OS:0 ssd:0.1 ?+ram:100 *&lab:0.9 - trivial_bw:1000
node b pc:1 pc850:1 pcvm:3 *lan:* - OS:0 ?+ram:100 *&lab:0.9 - trivial_bw:1000
node c pc:1 pc3000:1 pcvm:3 *lan:* - OS:0 ?+ram:300 - unique
node d pc:1 pc3000:1 - OS:0 *!rare:0.4 -
node old1 old:1 - - -
node old2 old:1 - - -
node kept special:1 - gpu:1.0 -
node card1 ixp:1 - - subnode_of:c
node card2 ixp:1 - - subnode_of:d
link a0 a:a/eth0 core:(null) 1000 0 0 ethernet
link a1 a:a/eth1 core:(null) 1000 0 0 ethernet fast
link b0 b:b/eth0 core:(null) 1000 0 0 ethernet
link b1 b:b/eth1 core:(null) 100 0 0 ethernet
link c0 c:c/eth0 leaf:(null) 1000 0 0 ethernet
link c1 c:c/eth1 leaf:(null) 1000 0 0 ethernet
link d0 d:d/eth0 leaf:(null) 1000 0 0 ethernet
link ab a:a/eth2 b:b/eth2 1000 0 0 cable
link t0 core:(null) leaf:(null) 1000 0 0 ethernet
set-type-limit old 1
policy desire gpu disallow
policy desire ssd limit 1.5
`

// TestMapAssign tries everything that assign's files can say.
func TestMapAssign(t *testing.T) {
	t.Setenv("CROFT_DIR", t.TempDir())
	for _, c := range []struct {
		name, top string
		ptop      string // "" for small
		status    int
		on        string // vnode pnode, "pnode|pnode" for either
		ways      []string
		says      string
	}{
		{name: "a type", top: "node v pc850\n", on: "v a|b"},
		{name: "slots", top: "node v pcvm:2\nnode w pcvm:2\nnode x pcvm:2\nfix-node v a\nfix-node w b\n", on: "v a w b x c"},
		{name: "a soft vclass", top: "make-vclass k 0.95 pc850 pc3000\nnode v k\nnode w k\nfix-node v a\n", on: "w b"},
		{name: "a soft vclass that mixes", top: "make-vclass k 0.5 pc850 pc3000\nnode v k\nnode w k\nnode x k\nfix-node v a\nfix-node w b\n", on: "x c|d"},
		{name: "a hard vclass", top: "make-vclass k 1.0 pc850 pc3000\nnode v k\nnode w k\nnode x k\n", status: 1, says: "k"},
		{name: "a desire", top: "node v pc ssd:1.0\n", on: "v a"},
		{name: "a desire that nothing has", top: "node v pc3000 ssd:1.0\n", status: 2, says: "with ssd"},
		{name: "a feature kept for those who ask", top: "node v special\n", status: 2, says: "special"},
		{name: "a wish", top: "node v pc850 ssd:0.4\n", on: "v a"},
		{name: "an additive desire", top: "node v pcvm ?+ram:200\nnode w pcvm ?+ram:100\n", on: "v c w c"},
		{name: "too much of an additive desire", top: "node v pcvm ?+ram:301\n", status: 2, says: "ram"},
		{name: "a global feature", top: "node v pc850 lab:0\nnode w pc\n", on: "v b w c|d"},
		{name: "a policy that disallows", top: "node v pc gpu:0.5\n", status: 2, says: "feature gpu is wanted, which the policy"},
		{name: "a policy that limits", top: "node v pc ssd:0.8\nnode w pc ssd:0.8\n", status: 2, says: "weights of 1.6 together; the policy of the testbed allows 1.5"},
		{name: "a policy that is kept to", top: "node v pc ssd:0.7\nnode w pc ssd:0.7\n", on: "v a w b|c|d"},
		{name: "a limit on a type", top: "node v old\nnode w old\n", status: 1, says: "limits of the testbed"},
		{name: "a subnode", top: "node v pc\nnode s ixp subnode_of:v\nfix-node s card1\n", on: "v c s card1"},
		{name: "a fixed node", top: "node v pc\nfix-node v d\n", on: "v d"},
		{name: "a node fixed where it cannot be", top: "node v pc850\nfix-node v c\n", status: 2, says: "node v is fixed to c"},
		{name: "a hint", top: "node v pc\nnode-hint v b\n", on: "v a|b|c|d"},
		{name: "a LAN", top: "node v pc\nnode w pc\nnode l lan\nlink e v l 10 0 0 ethernet\nlink f w l 10 0 0 ethernet\nfix-node v c\nfix-node w d\n", on: "l leaf", ways: []string{"e direct c", "f direct d0"}},
		{name: "within a switch", top: "node v pc\nnode w pc\nlink e v w 10 0 0 ethernet\nfix-node v c\nfix-node w d\n", ways: []string{"e intraswitch c"}},
		{name: "between switches", top: "node v pc\nnode w pc\nlink e v w 10 0 0 ethernet\nfix-node v a\nfix-node w d\n", ways: []string{"e interswitch  a"}},
		{name: "no_interswitch", top: "node v pc\nnode w pc\nlink e v w 10 0 0 ethernet no_interswitch\nfix-node v a\nfix-node w d\n", status: 1, says: "e"},
		{name: "another type of link", top: "node v pc\nnode w pc\nlink e v w 10 0 0 cable\nfix-node v a\nfix-node w b\n", ways: []string{"e direct ab"}},
		{name: "a type of link that few have", top: "node v pc\nnode w pc\nlink e v w 10 0 0 fast\n", status: 1, says: "link e: no way found"},
		{name: "a link of its own", top: "node v pc\nnode w pc\nlink e v w 10 0 0 ethernet\nlink f v w 10 0 0 ethernet\nfix-node v c\nfix-node w d\n", status: 2, says: "2 interfaces"},
		{name: "emulated", top: "node v pc\nnode w pc\nlink e v w 500 0 0 ethernet emulated\nlink f v w 500 0 0 ethernet emulated\nfix-node v c\nfix-node w d\n", ways: []string{"e intraswitch", "f intraswitch"}},
		{name: "too much emulated", top: "node v pc\nnode w pc\nlink e v w 500 0 0 ethernet emulated\nlink f v w 501 0 0 ethernet emulated\nfix-node v c\nfix-node w d\n", status: 1, says: "d"},
		{name: "trivial_ok", top: "node v pcvm\nnode w pcvm\nlink e v w 1000 0 0 ethernet emulated trivial_ok\nfix-node v a\nfix-node w a\n", ways: []string{"e trivial a:loopback"}},
		{name: "trivial_bw", top: "node v pcvm\nnode w pcvm\nlink e v w 1001 0 0 ethernet emulated trivial_ok\nfix-node v a\nfix-node w a\n", status: 1},
		{name: "not trivial_ok", top: "node v pcvm\nnode w pcvm\nlink e v w 10 0 0 ethernet emulated\nfix-node v a\nfix-node w a\n", status: 1, says: "link e: no way found from a to a"},
		{name: "disallow_trivial_mix", top: "node v pcvm disallow_trivial_mix\nnode w pcvm\nnode x pcvm\nlink e v w 10 0 0 ethernet emulated trivial_ok\nlink f v x 10 0 0 ethernet emulated trivial_ok\nfix-node w a\nfix-node x b\n", on: "v c"},
		{name: "trivial mix", top: "node v pcvm\nnode w pcvm\nnode x pcvm\nlink e v w 10 0 0 ethernet emulated trivial_ok\nlink f v x 10 0 0 ethernet emulated trivial_ok\nfix-node w a\nfix-node x b\n", on: "v a|b"},
		{name: "native bandwidth", top: "node v pc\nnode w pc\nlink e v w * 0 0 ethernet\nfix-node v c\nfix-node w d\n", ways: []string{"e intraswitch"}},
		{name: "native bandwidth of a shared interface", top: "node v pc\nnode w pc\nlink e v w * 0 0 ethernet emulated\n", status: 255, says: "native bandwidth goes with neither emulated nor trivial_ok"},
		{name: "fixed interfaces", top: "node v pc\nnode w pc\nlink e v w 10 0 0 ethernet fixsrciface:eth1 fixdstiface:eth0\nfix-node v c\nfix-node w d\n", ways: []string{"e intraswitch c1 (c/eth1,leaf/(null)) d0"}},
		{name: "an interface that there is not", top: "node v pc\nnode w pc\nlink e v w 10 0 0 ethernet fixsrciface:eth7\nfix-node v c\nfix-node w d\n", status: 1, says: "e"},
		{name: "an interface too slow", top: "node v pc\nnode w pc\nlink e v w 500 0 0 ethernet\nlink f v w 500 0 0 ethernet fixsrciface:eth1\nfix-node v b\n", status: 1},
		{name: "margins and nodelay", top: "node v pc\nnode w pc\nlink e v w 10:1:1 5:1:1:2 0.1:0:0:1 ethernet nodelay\nfix-node v c\nfix-node w d\n", ways: []string{"e intraswitch"}},
		{name: "margins that are none", top: "node v pc\nnode w pc\nlink e v w 10:1 0 0 ethernet\n", status: 255, says: "top line 3: link e: bandwidth"},
		{name: "a delay that is no number", top: "node v pc\nnode w pc\nlink e v w 10 long 0 ethernet\n", status: 255, says: `top line 3: link e: delay "long"`},
		{name: "a delay node", ptop: "node s switch:1 - - -\nnode p pc:1 delay:2 - - -\nnode q pc:1 delay:2 - - -\nnode r pc:1 delay:2 - - -\n" +
			"link p0 p:p/e0 s:(null) 10 0 0 ethernet\nlink q0 q:q/e0 s:(null) 10 0 0 ethernet\nlink r0 r:r/e0 s:(null) 10 0 0 ethernet\nlink r1 r:r/e1 s:(null) 10 0 0 ethernet\n",
			top: "node v pc\nnode w pc\nnode tbdelay0 delay\nlink l/1 v tbdelay0 10 0 0 ethernet\nlink l/2 tbdelay0 w 10 0 0 ethernet\n", on: "tbdelay0 r", ways: []string{"l/1 intraswitch", "l/2 intraswitch"}},
		{name: "an unknown flag of a link", top: "node v pc\nnode w pc\nlink e v w 10 0 0 ethernet quick\n", status: 255, says: `unknown flag "quick"`},
		{name: "an unknown flag of a node", top: "node v pc quick\n", status: 255, says: `unknown flag "quick"`},
		{name: "an unknown flag of a testbed's node", ptop: "node a pc:1 - - quick\n", top: "node v pc\n", status: 255, says: `unknown flag "quick"`},
		{name: "an unknown directive", top: "group v w\n", status: 255, says: `unknown directive "group"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			ptop, top := filepath.Join(dir, "ptop"), filepath.Join(dir, "top")
			text := c.ptop
			if text == "" {
				text = small
			}
			for name, text := range map[string]string{ptop: text, top: c.top} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, status := run(t, "", "map", "--assign", ptop, top)
			if status != c.status || !strings.Contains(out+errs, c.says) {
				t.Fatalf("status %d, want %d, and %q in\n%s%s", status, c.status, c.says, out, errs)
			}
			lines := strings.Split(out, "\n")
			for i, on := 0, strings.Fields(c.on); i+1 < len(on); i += 2 {
				found := false
				for _, host := range strings.Split(on[i+1], "|") {
					found = found || contains(lines, on[i]+" "+host)
				}
				if !found {
					t.Errorf("%s is not on %s:\n%s", on[i], on[i+1], out)
				}
			}
			for _, way := range c.ways {
				if !strings.Contains(out, "\n"+way) {
					t.Errorf("no %q in\n%s", way, out)
				}
			}
		})
	}
}
