package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/admin"
	"croft/client"
	"croft/urn"
)

// experimenter uses a slice without end.
type experimenter struct {
	backend
	slice   urn.URN
	creds   []client.Credential
	request string
	users   [2][]client.User
	random  *rand.Rand

	// state is what the last call that was answered left: "", "geni_allocated"
	// or "geni_provisioned". Sure says that no call was under way since.
	state string
	sure  bool
}

// gone reports whether an error is the server's death.
func gone(err error) bool {
	var refused *client.APIError
	return err != nil && !errors.As(err, &refused)
}

// use calls the aggregate until the server is gone. Errors are what it should
// not have said.
func (e *experimenter) use(c *client.Client) error {
	ctx, all := context.Background(), []urn.URN{e.slice}
	for {
		e.sure = false
		var err error
		next := e.state
		switch {
		case e.state == "":
			_, err = c.Allocate(ctx, e.slice, e.creds, e.request, time.Time{})
			next = "geni_allocated"
		case e.state == "geni_allocated" && e.random.IntN(8) > 0:
			_, err = c.Provision(ctx, all, e.creds, client.ProvisionOptions{Users: e.users[0]})
			next = "geni_provisioned"
		case e.state == "geni_allocated" || e.random.IntN(4) == 0:
			_, err = c.Delete(ctx, all, e.creds, false)
			next = ""
		default:
			action := []string{"geni_start", "geni_start", "geni_stop", "geni_restart", "geni_update_users"}[e.random.IntN(5)]
			_, err = c.Perform(ctx, all, e.creds, action, client.ActionOptions{Users: e.users[e.random.IntN(2)], BestEffort: true})
			var refused *client.APIError
			if errors.As(err, &refused) && (refused.Code == 7 || refused.Code == 13) {
				err = nil // not in that state
			}
		}
		var refused *client.APIError
		switch {
		case gone(err):
			return nil
		case errors.As(err, &refused) && (refused.Busy() || e.scarce && e.state == "" && refused.Code == 6):
			next = e.state
		case err != nil:
			return fmt.Errorf("%s, %s: %w", e.slice, e.state, err)
		}
		e.state, e.sure = next, true
		time.Sleep(time.Duration(e.random.IntN(40)) * time.Millisecond)
	}
}

// compare says how what the server knows of the slice differs from what it had
// acknowledged.
func (e *experimenter) compare(list []admin.Sliver) error {
	var live []admin.Sliver
	states := map[string]bool{}
	for _, v := range list {
		if v.Slice.Equal(e.slice) {
			live = append(live, v)
			states[v.Allocation] = true
		}
	}
	const whole = 3 // nodes and links of the request
	if len(live) != 0 && len(live) != whole || len(states) > 1 {
		return fmt.Errorf("%s has %d slivers in the states %v: a part of a request", e.slice, len(live), states)
	}
	if !e.sure {
		return nil // done or not done, both are right
	}
	if len(live) == 0 != (e.state == "") || len(live) > 0 && !states[e.state] {
		return fmt.Errorf("%s has %d slivers in the states %v; acknowledged was %q", e.slice, len(live), states, e.state)
	}
	return nil
}

// settled waits until nothing changes by itself any more, and nothing is
// missing on a machine or there without need.
func (b *testbed) settled(door *admin.Client) ([]admin.Sliver, admin.Machines) {
	b.Helper()
	ctx := context.Background()
	var list []admin.Sliver
	var m admin.Machines
	b.await("the machines to be what the store says", func() bool {
		var err error
		if list, err = door.Slivers(ctx, urn.URN{}); err != nil {
			b.Fatal(err)
		}
		for _, v := range list {
			if v.Doing != "" {
				return false
			}
			if v.Operational == "geni_failed" {
				b.Fatalf("%s %s of %s failed: %s", v.Kind, v.ClientID, v.Slice, v.Fault)
			}
		}
		if m, err = door.Machines(ctx); err != nil {
			b.Fatal(err)
		}
		return len(m.Silent) == 0
	})
	return list, m
}

// TestKills kills the manager at random points of a workload over all drivers
// that work here. After each restart there is exactly what the store says:
// what was acknowledged, and nothing else, neither in the store, nor with the
// drivers, nor among processes, namespaces and mounts.
func TestKills(t *testing.T) {
	t.Parallel()
	random := seed(t)
	rounds := 20
	if soak() {
		rounds = 500
	}
	if text := os.Getenv("CROFT_KILLS"); text != "" {
		if _, err := fmt.Sscan(text, &rounds); err != nil {
			t.Fatalf("CROFT_KILLS: %v", err)
		}
	}
	drivers := backends(t)
	var top, types, hosts string
	var settings []setting
	for _, d := range drivers {
		top, types, hosts = top+d.top, types+d.types, hosts+d.hosts
		settings = append(settings, d.settings...)
	}
	inventory := "authority: example.org\n" + top + "sliver_types:\n" + types + "hosts:\n" + hosts
	b := newFolder(t, settings...)
	b.write("inventory.yaml", inventory)
	b.must("member", "add", "bob")
	var users [2][]client.User
	for i, members := range [][]string{{"alice"}, {"alice", "bob"}} {
		for _, m := range members {
			key := strings.TrimSpace(b.read("members", m, "id_ed25519.pub"))
			users[i] = append(users[i], client.User{URN: urn.URN{Authority: authority, Type: urn.User, Name: m}, Keys: []string{key}})
		}
	}
	var all []*experimenter
	for _, d := range drivers {
		for i := range d.slices {
			slice := b.slice(fmt.Sprintf("%s%d", d.driver, i))
			all = append(all, &experimenter{
				backend: d, slice: slice, creds: []client.Credential{b.credential(slice)}, users: users,
				random: rand.New(rand.NewPCG(random.Uint64(), 0)), sure: true,
				request: strings.ReplaceAll(`<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">
<node client_id="a">TYPE<interface client_id="a:0"><ip address="10.1.1.1" netmask="255.255.255.0"/></interface></node>
<node client_id="b">TYPE<interface client_id="b:0"><ip address="10.1.1.2" netmask="255.255.255.0"/></interface></node>
<link client_id="l"><interface_ref client_id="a:0"/><interface_ref client_id="b:0"/></link></rspec>`, "TYPE", d.node),
			})
		}
	}
	door := admin.NewClient(admin.Socket(filepath.Join(b.dir, "state", "nodes")))
	b.start()
	seen := map[string]int{}
	for round := range rounds {
		c := b.caller()
		var wg sync.WaitGroup
		for _, e := range all {
			wg.Go(func() {
				if err := e.use(c); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		time.Sleep(time.Duration(random.Int64N(int64(1200 * time.Millisecond))))
		b.kill()
		wg.Wait()
		b.start()
		list, machines := b.settled(door)
		for _, e := range all {
			if err := e.compare(list); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			e.state = ""
			for _, v := range list {
				if v.Slice.Equal(e.slice) {
					e.state = v.Allocation
				}
			}
			seen[e.driver+" "+e.state]++
		}
		running := map[string]int{}
		for _, thing := range machines.Things {
			if thing.Amiss != "" {
				t.Errorf("round %d: %s %s of %s: %s\n%s", round, thing.Kind, thing.ClientID, thing.Slice, thing.Amiss, b.croft("admin", "events", thing.Slice.String()).out)
			}
			if thing.Running {
				running[thing.Driver]++
			}
		}
		for _, d := range drivers {
			if d.there == nil {
				continue
			}
			b.count(d, running[d.driver])
		}
		switch {
		case round%20 == 4:
			b.loginsWork(all)
		case round%20 == 19:
			for _, e := range all {
				b.croft("delete", e.slice.Name)
				e.state = ""
			}
			if list, _ := b.settled(door); len(list) != 0 {
				t.Errorf("round %d: %d slivers after all were deleted", round, len(list))
			}
			b.awaitNothing()
			for _, d := range drivers {
				if d.there == nil {
					continue
				}
				b.count(d, 0)
			}
			for _, d := range drivers {
				if d.changes == nil {
					continue
				}
				b.clean(d)
			}
		}
		if t.Failed() {
			return
		}
		if round%10 == 9 {
			t.Logf("%d kills, after which slices were: %v", round+1, seen)
		}
	}
}

// count waits until as many nodes of a driver run as should. What was being
// started or stopped when the manager was killed ends by itself, at a time of
// the kernel's.
func (b *testbed) count(d backend, want int) {
	b.Helper()
	var n int
	var err error
	defer func() {
		if err != nil || n != want {
			b.Logf("%d nodes of the driver %s run, it says %d: %v", n, d.driver, want, err)
		}
	}()
	b.await(fmt.Sprintf("%d nodes of the driver %s to run", want, d.driver), func() bool {
		n, err = d.there(b)
		return err == nil && n == want
	})
}

// clean waits until nothing is left on a driver's machines.
func (b *testbed) clean(d backend) {
	b.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			b.Logf("left by the driver %s:\n\t%s", d.driver, strings.Join(left, "\n\t"))
		}
	}()
	b.await("machines of the driver "+d.driver+" to be clean", func() bool {
		left = d.changes()
		return len(left) == 0
	})
}

// loginsWork brings what is provisioned up, where users can log in, and sees
// whether its nodes reach each other.
func (b *testbed) loginsWork(all []*experimenter) {
	b.Helper()
	need(b, "ssh")
	for _, e := range all {
		if e.state != "geni_provisioned" || e.reach == "" {
			continue
		}
		c := b.caller()
		if !b.states(c, e.slice, e.creds, "geni_ready") {
			b.must("action", e.slice.Name, "geni_start")
		}
		b.await("nodes to be ready", func() bool { return b.states(c, e.slice, e.creds, "geni_ready") })
		b.must("ssh", e.slice.Name, "a", "--", e.reach)
		b.must("ssh", "--gateway", e.slice.Name, "b", "--", "true")
	}
}

// A running manager brings back what is lost, and its operator sees it.
func TestLossIsMended(t *testing.T) {
	t.Parallel()
	need(t, "ssh")
	b := newTestbed(t, setting{"reconcile: 1m", "reconcile: 1s"})
	b.slice("lost")
	b.must("up", "lost", repository(t, "testdata", "requests", "two-nodes.rspec"))
	// Its users can halt a node, as a power cut can.
	b.croft("ssh", "lost", "node0", "--", "sudo -n kill -TERM 1; sleep 10")
	b.await("the loss to be seen", func() bool {
		return strings.Contains(b.must("admin", "events", "lost"), "it did not run any more: being started again")
	})
	b.await("the node to be back", func() bool { return b.croft("ssh", "lost", "node0", "--", "true").status == 0 })
	b.must("ssh", "lost", "node0", "--", "ping -c 1 -W 10 10.10.1.2")
	if out := b.must("admin", "machines"); strings.Contains(out, "does not run") {
		t.Errorf("amiss:\n%s", out)
	}
}

// A host that is drained takes no new nodes, also after a restart.
func TestDrain(t *testing.T) {
	t.Parallel()
	b := newSimulated(t, small("h1", "h2"))
	b.slice("on")
	file := b.request(`<node client_id="n" component_id="urn:publicid:IDN+lab.example.org+node+h1"/>`)
	b.must("up", "on", file)
	if out := b.must("admin", "drain", "h1", "--reason", "new disks"); !strings.Contains(out, "h1 takes no new slivers") {
		t.Errorf("drain says %q", out)
	}
	b.refused("no host", "admin", "drain", "h3")
	for _, when := range []string{"at once", "after a restart"} {
		if ad := b.advertised(); ad["h1"].Available || !ad["h2"].Available {
			t.Errorf("%s: h1 available %v, h2 %v", when, ad["h1"].Available, ad["h2"].Available)
		}
		hosts := b.must("admin", "hosts")
		for _, want := range []string{"drained", "new disks", "3 of 4", "on/n"} {
			if !strings.Contains(hosts, want) {
				t.Errorf("%s: croft admin hosts does not say %q:\n%s", when, want, hosts)
			}
		}
		b.slice("late")
		b.refused("drained by the operator: new disks", "allocate", "late", file)
		b.stop()
		b.start()
	}
	b.must("admin", "undrain", "h1")
	b.must("allocate", "late", file)
	if out := b.must("admin", "delete", "--force", "late"); !strings.Contains(out, "unallocated") {
		t.Errorf("delete says %q", out)
	}
}
