package aggregate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/drivers/simulated"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

func TestLifeCycle(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "exp1")
	whole := Target{Slice: slice}

	a, err := b.Allocate(ctx, p, slice, []byte(twoNodes), AllocateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Slivers) != 3 || !strings.Contains(string(a.Manifest), `type="manifest"`) {
		t.Fatalf("%d slivers and manifest %s", len(a.Slivers), a.Manifest)
	}
	if want := b.clock.Now().Add(10 * time.Minute); !a.Slivers[0].Expires.Equal(want) {
		t.Errorf("allocated until %s, want %s", a.Slivers[0].Expires, want)
	}
	alice := request.User{URN: urn.MustParse("urn:publicid:IDN+example.org+user+alice"), Keys: []string{surroundings.NewKey(t)}}
	root := request.User{URN: urn.MustParse("urn:publicid:IDN+other.org+user+root"), Keys: []string{surroundings.NewKey(t)}}
	d, err := b.Provision(ctx, p, whole, ProvisionOptions{Users: []request.User{alice, root}, Version: geni3})
	if err != nil {
		t.Fatal(err)
	}
	if s := d.Slivers[0].Sliver; s.Allocation != slivers.Provisioned || s.Operational != slivers.PendingAllocation {
		t.Errorf("after Provision: %s, %s", s.Allocation, s.Operational)
	}
	for _, want := range []string{`username="alice"`, `username="root2"`, `port="22001"`} {
		if !strings.Contains(string(d.Manifest), want) {
			t.Errorf("the manifest has no %s:\n%s", want, d.Manifest)
		}
	}
	states := b.states(slice)
	if states["a"].Operational != slivers.NotReady || states["l"].Operational != slivers.Ready {
		t.Errorf("made: node %s, link %s", states["a"].Operational, states["l"].Operational)
	}
	for _, step := range []struct {
		action Action
		want   slivers.Operational
	}{{Start, slivers.Ready}, {Start, slivers.Ready}, {Restart, slivers.Ready}, {Stop, slivers.NotReady}, {Stop, slivers.NotReady}, {Start, slivers.Ready}} {
		if _, err := b.Act(ctx, p, whole, step.action, ActOptions{}); err != nil {
			t.Fatalf("%s: %v", step.action, err)
		}
		if got := b.states(slice)["b"].Operational; got != step.want {
			t.Errorf("after %s the node is %s, want %s", step.action, got, step.want)
		}
	}
	end := b.clock.Now().Add(48 * time.Hour)
	renewed, err := b.Renew(ctx, p, whole, end, RenewOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range renewed {
		if !o.Sliver.Expires.Equal(end) {
			t.Errorf("renewed until %s, want %s", o.Sliver.Expires, end)
		}
	}
	gone, err := b.Delete(ctx, p, whole, false)
	if err != nil || len(gone) != 3 || gone[0].Sliver.Allocation != slivers.Unallocated {
		t.Fatalf("Delete: %+v, %v", gone, err)
	}
	if left := b.states(slice); len(left) != 0 {
		t.Errorf("left after Delete: %v", left)
	}
	if all, _ := b.store.All(ctx); len(all) != 0 {
		t.Errorf("the store keeps %d slivers", len(all))
	}
	if found, _ := b.driver.List(ctx); len(found) != 0 {
		t.Errorf("the driver keeps %v", found)
	}
	_, err = b.Status(ctx, p, whole, false)
	wantKind(t, "Status of an empty slice", err, NotFound)
	if d, err := b.Describe(ctx, p, whole, geni3); err != nil || len(d.Slivers) != 0 {
		t.Errorf("Describe of an empty slice: %+v, %v", d, err)
	}
}

func TestRefusals(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "exp1")
	_, foreign := b.principal("bob", "exp2")
	whole := Target{Slice: slice}
	document := func(nodes string) []byte { return []byte(header + nodes + "</rspec>") }
	allocate := func(doc []byte) error {
		_, err := b.Allocate(ctx, p, slice, doc, AllocateOptions{})
		return err
	}
	for _, test := range []struct {
		name string
		err  error
		want Kind
		says string
	}{
		{"another's slice", func() error { _, err := b.Allocate(ctx, p, foreign, []byte(twoNodes), AllocateOptions{}); return err }(), Forbidden, "exp2"},
		{"not XML", allocate([]byte("<rspec")), BadArgs, ""},
		{"no known language", allocate([]byte("hello")), BadArgs, "GENI 3"},
		{"an old RSpec", allocate([]byte(`<rspec xmlns="http://www.protogeni.net/resources/rspec/0.1"/>`)), BadVersion, "GENI 3"},
		{"nothing for us", allocate(document(`<node client_id="x" component_manager_id="urn:publicid:IDN+other.org+authority+cm"/>`)), BadArgs, "nothing of this aggregate"},
		{"unknown sliver type", allocate(document(`<node client_id="x"><sliver_type name="xen"/></node>`)), BadArgs, "xen"},
		{"too many", allocate([]byte(exclusiveNodes("a", "b", "c", "d", "e", "f", "g", "h", "i"))), TooBig, ""},
		{"an end in the past", func() error {
			_, err := b.Allocate(ctx, p, slice, []byte(twoNodes), AllocateOptions{End: b.clock.Now().Add(-time.Second)})
			return err
		}(), BadArgs, "geni_end_time"},
		{"provision of nothing", func() error { _, err := b.Provision(ctx, p, whole, ProvisionOptions{Version: geni3}); return err }(), NotFound, ""},
		{"action on nothing", func() error { _, err := b.Act(ctx, p, whole, Start, ActOptions{}); return err }(), NotFound, ""},
		{"unknown action", func() error { _, err := b.Act(ctx, p, whole, "geni_dance", ActOptions{}); return err }(), Unsupported, "geni_start"},
		{"unknown version", func() error {
			_, err := b.Provision(ctx, p, whole, ProvisionOptions{})
			return err
		}(), BadVersion, "GENI 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantKind(t, test.name, test.err, test.want)
			if test.err != nil && !strings.Contains(test.err.Error(), test.says) {
				t.Errorf("%q does not say %q", test.err, test.says)
			}
		})
	}
	if all, _ := b.store.All(ctx); len(all) != 0 {
		t.Errorf("refused calls left %d slivers", len(all))
	}

	if err := allocate([]byte(twoNodes)); err != nil {
		t.Fatal(err)
	}
	_, err := b.Act(ctx, p, whole, Start, ActOptions{})
	wantKind(t, "start of an allocated sliver", err, Unsupported)
	err = allocate([]byte(twoNodes))
	wantKind(t, "the same client_ids again", err, BadArgs)
	_, err = b.Provision(ctx, p, whole, ProvisionOptions{Version: geni3,
		Users: []request.User{{URN: urn.MustParse("urn:publicid:IDN+example.org+user+alice"), Keys: []string{"ssh-rsa nonsense"}}}})
	wantKind(t, "a key that is none", err, BadArgs)
	if got := b.states(slice)["a"].Allocation; got != slivers.Allocated {
		t.Errorf("a refused Provision left the node %s", got)
	}
	_, err = b.Renew(ctx, p, whole, b.clock.Now().Add(10*365*24*time.Hour), RenewOptions{})
	wantKind(t, "renewal beyond the limit", err, NotPermitted)
	if _, err := b.Renew(ctx, p, whole, b.clock.Now().Add(10*365*24*time.Hour), RenewOptions{AsLate: true}); err != nil {
		t.Errorf("renewal as late as possible: %v", err)
	}
}

func TestTargets(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "exp1")
	q, slice2 := b.principal("bob", "exp2")
	if _, err := b.Allocate(ctx, p, slice, []byte(twoNodes), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Allocate(ctx, q, slice2, []byte(header+`<node client_id="z"><sliver_type name="simulated"/></node></rspec>`), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	mine, other := b.states(slice), b.states(slice2)
	unknown := urn.MustParse("urn:publicid:IDN+example.org+sliver+nothing")
	for _, test := range []struct {
		name string
		urns []urn.URN
		want int // slivers of the target, or -
		kind Kind
	}{
		{"none", nil, -1, BadArgs},
		{"the slice", []urn.URN{slice}, 0, 0},
		{"the slice twice", []urn.URN{slice, slice}, 0, 0},
		{"two slices", []urn.URN{slice, slice2}, -1, BadArgs},
		{"slice and sliver", []urn.URN{slice, mine["a"].URN}, -1, BadArgs},
		{"two slivers", []urn.URN{mine["a"].URN, mine["b"].URN}, 2, 0},
		{"slivers of two slices", []urn.URN{mine["a"].URN, other["z"].URN}, -1, BadArgs},
		{"an unknown sliver", []urn.URN{unknown}, -1, NotFound},
		{"a user", []urn.URN{urn.MustParse("urn:publicid:IDN+example.org+user+alice")}, -1, BadArgs},
	} {
		t.Run(test.name, func(t *testing.T) {
			target, err := b.Resolve(ctx, test.urns)
			if test.want < 0 {
				wantKind(t, test.name, err, test.kind)
				return
			}
			if err != nil || !target.Slice.Equal(slice) || len(target.Slivers) != test.want {
				t.Errorf("%+v, %v", target, err)
			}
		})
	}
	some := Target{Slice: slice, Slivers: []urn.URN{mine["a"].URN, unknown}}
	_, err := b.Status(ctx, p, some, false)
	wantKind(t, "Status of an unknown sliver", err, NotFound)
	got, err := b.Status(ctx, p, some, true)
	if err != nil || len(got) != 2 || got[0].Err != nil || got[1].Err == nil {
		t.Errorf("best effort: %+v, %v", got, err)
	}
	if _, err := b.Delete(ctx, p, Target{Slice: slice, Slivers: []urn.URN{mine["l"].URN}}, false); err != nil {
		t.Fatal(err)
	}
	if left := b.states(slice); len(left) != 2 {
		t.Errorf("after deleting the link: %d slivers, want 2", len(left))
	}
}

func TestSecondDocumentJoinsExistingNodes(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "exp1")
	first := header + `<node client_id="a"><sliver_type name="simulated"/><interface client_id="a:if0"/></node></rspec>`
	second := header + `<node client_id="b"><sliver_type name="simulated"/><interface client_id="b:if0"/></node>
		<link client_id="l"><interface_ref client_id="a:if0"/><interface_ref client_id="b:if0"/></link></rspec>`
	if _, err := b.Allocate(ctx, p, slice, []byte(first), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Version: geni3}); err != nil {
		t.Fatal(err)
	}
	a, err := b.Allocate(ctx, p, slice, []byte(second), AllocateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Slivers) != 2 || strings.Contains(string(a.Manifest), `client_id="a"`) {
		t.Errorf("the manifest of an Allocate shows more than what is new:\n%s", a.Manifest)
	}
	if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Version: geni3}); err != nil {
		t.Fatal(err)
	}
	states := b.states(slice)
	if len(states) != 3 || states["l"].Operational != slivers.Ready {
		t.Errorf("states: %+v", states)
	}
	d, err := b.Describe(ctx, p, Target{Slice: slice}, geni3)
	if err != nil || !strings.Contains(string(d.Manifest), `client_id="a"`) || !strings.Contains(string(d.Manifest), `client_id="b"`) {
		t.Errorf("Describe: %v\n%s", err, d.Manifest)
	}
	// A deleted node breaks the link that joined it.
	if _, err := b.Delete(ctx, p, Target{Slice: slice, Slivers: []urn.URN{states["a"].URN}}, false); err != nil {
		t.Fatal(err)
	}
	if l := b.states(slice)["l"]; l.Operational != slivers.Failed || l.Fault == "" {
		t.Errorf("the link of a deleted node is %s, %q", l.Operational, l.Fault)
	}
}

func TestExpiryGivesBack(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "exp1")
	q, slice2 := b.principal("bob", "exp2")
	if _, err := b.Allocate(ctx, p, slice, []byte(exclusiveNodes("a", "b")), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Allocate(ctx, q, slice2, []byte(exclusiveNodes("c")), AllocateOptions{})
	wantKind(t, "a full testbed", err, TooBig)
	b.clock.Advance(10*time.Minute + time.Second)
	_, err = b.Status(ctx, p, Target{Slice: slice}, false)
	wantKind(t, "Status of an expired sliver", err, NotFound)
	if _, err := b.sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Allocate(ctx, q, slice2, []byte(exclusiveNodes("c", "d")), AllocateOptions{}); err != nil {
		t.Errorf("after the expiry: %v", err)
	}
	// The credential's end bounds a lease, whatever is asked for.
	d, err := b.Provision(ctx, q, Target{Slice: slice2}, ProvisionOptions{Version: geni3, End: b.clock.Now().Add(6 * 24 * time.Hour)})
	if err != nil || !d.Slivers[0].Sliver.Expires.Equal(b.clock.Now().Add(6*24*time.Hour)) {
		t.Errorf("Provision: %+v, %v", d, err)
	}
}

func TestReleasedHostsStayTakenUntilTheDriverConfirms(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	let := make(chan struct{})
	b.driver.Fail = func(op simulated.Operation, _ urn.URN) error {
		if op == simulated.Remove {
			<-let
		}
		return nil
	}
	p, slice := b.principal("alice", "exp1")
	q, slice2 := b.principal("bob", "exp2")
	if _, err := b.Allocate(ctx, p, slice, []byte(exclusiveNodes("a", "b")), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Version: geni3}); err != nil {
		t.Fatal(err)
	}
	b.states(slice)
	if _, err := b.Delete(ctx, p, Target{Slice: slice}, false); err != nil {
		t.Fatal(err)
	}
	_, err := b.Status(ctx, p, Target{Slice: slice}, false)
	wantKind(t, "Status right after Delete", err, NotFound)
	_, err = b.Allocate(ctx, q, slice2, []byte(exclusiveNodes("c")), AllocateOptions{})
	wantKind(t, "Allocate while hosts are being released", err, TooBig)
	close(let)
	b.states(slice)
	if _, err := b.Allocate(ctx, q, slice2, []byte(exclusiveNodes("c")), AllocateOptions{}); err != nil {
		t.Errorf("Allocate after the release: %v", err)
	}
}

func TestFailures(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	broken := errors.New("no space left")
	failing := map[simulated.Operation]bool{}
	var mu sync.Mutex
	b.driver.Fail = func(op simulated.Operation, _ urn.URN) error {
		mu.Lock()
		defer mu.Unlock()
		if failing[op] {
			return broken
		}
		return nil
	}
	fail := func(op simulated.Operation, on bool) {
		mu.Lock()
		defer mu.Unlock()
		failing[op] = on
	}
	p, slice := b.principal("alice", "exp1")
	if _, err := b.Allocate(ctx, p, slice, []byte(twoNodes), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	fail(simulated.Make, true)
	if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Version: geni3}); err != nil {
		t.Fatal(err)
	}
	if a := b.states(slice)["a"]; a.Operational != slivers.Failed || !strings.Contains(a.Fault, "no space left") {
		t.Errorf("a node that could not be made is %s, %q", a.Operational, a.Fault)
	}
	_, err := b.Act(ctx, p, Target{Slice: slice}, Start, ActOptions{})
	wantKind(t, "start of a failed node", err, Unsupported)
	got, err := b.Act(ctx, p, Target{Slice: slice}, Start, ActOptions{BestEffort: true})
	if err != nil || !slices.ContainsFunc(got, func(o Outcome) bool { return o.Err != nil }) {
		t.Errorf("start with best effort: %+v, %v", got, err)
	}
	// A removal that fails is tried again until it succeeds.
	fail(simulated.Make, false)
	fail(simulated.Remove, true)
	q, slice2 := b.principal("bob", "exp2")
	if _, err := b.Create(ctx, q, slice2, []byte(header+`<node client_id="z"><sliver_type name="simulated"/></node></rspec>`), CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if z := b.states(slice2)["z"]; z.Operational != slivers.Ready {
		t.Errorf("CreateSliver left the node %s", z.Operational)
	}
	if _, err := b.Delete(ctx, q, Target{Slice: slice2}, false); err != nil {
		t.Fatal(err)
	}
	fail(simulated.Remove, false)
	deadline := time.Now().Add(30 * time.Second)
	for {
		if all, _ := b.store.OfSlice(ctx, slice2); len(all) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the removal was not tried again")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestRestartGoesOn(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "exp1")
	if _, err := b.Allocate(ctx, p, slice, []byte(twoNodes), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The driver hangs until the service is closed: what was begun is not done.
	b.driver.Times = map[simulated.Operation]time.Duration{simulated.Make: time.Hour}
	if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Version: geni3}); err != nil {
		t.Fatal(err)
	}
	b.Close()
	b.driver.Times = nil
	leak := urn.MustParse("urn:publicid:IDN+example.org+sliver+leak")
	list, _ := b.store.OfSlice(ctx, slice)
	n := driverNode(b.Inventory(), &list[0])
	n.Sliver = leak
	if err := b.driver.Make(ctx, n); err != nil {
		t.Fatal(err)
	}
	b.start()
	if states := b.states(slice); states["a"].Operational != slivers.NotReady || states["l"].Operational != slivers.Ready {
		t.Errorf("after the restart: %+v", states)
	}
	found, _ := b.driver.List(ctx)
	if len(found) != 3 {
		t.Errorf("after the restart the driver has %v, want three slivers and no leak", found)
	}
	if _, err := b.Act(ctx, p, Target{Slice: slice}, Start, ActOptions{}); err != nil {
		t.Fatal(err)
	}
	b.states(slice)
	// Everything is lost on the machines: it is made again.
	b.Close()
	for _, f := range found {
		if err := b.driver.Remove(ctx, f.Sliver); err != nil {
			t.Fatal(err)
		}
	}
	b.start()
	if states := b.states(slice); states["a"].Operational != slivers.Ready || states["l"].Operational != slivers.Ready {
		t.Errorf("after a loss: %+v", states)
	}
	if found, _ := b.driver.List(ctx); len(found) != 3 {
		t.Errorf("after a loss the driver has %v", found)
	}
}

func TestShutdown(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, slice := b.principal("alice", "exp1")
	whole := Target{Slice: slice}
	if _, err := b.Create(ctx, p, slice, []byte(twoNodes), CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.states(slice)
	for range 2 {
		if err := b.Shutdown(ctx, p, slice); err != nil {
			t.Fatalf("Shutdown: %v", err)
		}
	}
	if got := b.states(slice)["a"].Operational; got != slivers.NotReady {
		t.Errorf("after Shutdown the node is %s", got)
	}
	_, err := b.Act(ctx, p, whole, Start, ActOptions{})
	wantKind(t, "start after Shutdown", err, Forbidden)
	_, err = b.Delete(ctx, p, whole, false)
	wantKind(t, "Delete after Shutdown", err, Forbidden)
	_, err = b.Allocate(ctx, p, slice, []byte(exclusiveNodes("x")), AllocateOptions{})
	wantKind(t, "Allocate after Shutdown", err, Forbidden)
	if _, err := b.Status(ctx, p, whole, false); err != nil {
		t.Errorf("Status after Shutdown: %v", err)
	}
	if err := b.LiftShutdown(ctx, slice); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Act(ctx, p, whole, Start, ActOptions{}); err != nil {
		t.Errorf("start after lifting: %v", err)
	}
}

func TestTheLastHostIsGivenOnce(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	const callers = 12
	type caller struct {
		allocate func() error
		slice    urn.URN
	}
	var all []caller
	for i := range callers {
		p, slice := b.principal(fmt.Sprintf("u%d", i), fmt.Sprintf("exp%d", i))
		all = append(all, caller{slice: slice, allocate: func() error {
			_, err := b.Allocate(ctx, p, slice, []byte(exclusiveNodes("a")), AllocateOptions{})
			return err
		}})
	}
	var group sync.WaitGroup
	errs := make([]error, callers)
	for i, c := range all {
		group.Add(1)
		go func() { defer group.Done(); errs[i] = c.allocate() }()
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		var e *Error
		switch {
		case err == nil:
			won++
		case !errors.As(err, &e) || e.Kind != TooBig && e.Kind != Busy && e.Kind != Unavailable:
			t.Errorf("a loser was told %v", err)
		}
	}
	if won != 2 {
		t.Errorf("%d callers got one of 2 hosts", won)
	}
	taken := map[urn.URN]int{}
	slivers, _ := b.store.All(ctx)
	for _, v := range slivers {
		taken[v.Node.Host]++
	}
	for host, n := range taken {
		if n > 1 {
			t.Errorf("%s was given %d times", host, n)
		}
	}
}

func TestUsers(t *testing.T) {
	key := surroundings.NewKey(t)
	alice := urn.MustParse("urn:publicid:IDN+example.org+user+alice")
	clean, err := cleanUsers([]request.User{{URN: alice, Keys: []string{`command="rm -rf /" ` + key, key, "  " + key + "\n"}}})
	if err != nil || len(clean) != 1 || len(clean[0].Keys) != 1 || strings.Contains(clean[0].Keys[0], "command") {
		t.Errorf("cleaned: %+v, %v", clean, err)
	}
	for name, bad := range map[string]string{"two lines": key + key, "empty": "", "a comment": "# nothing"} {
		if _, err := cleanUsers([]request.User{{URN: alice, Keys: []string{bad}}}); err == nil {
			t.Errorf("%s was taken for a key", name)
		}
	}
	for _, test := range []struct{ name, want string }{
		{"alice", "alice"}, {"Alice.Smith", "alicesmith"}, {"1234", "user"}, {"root", "root2"}, {"-x", "x"}, {"äöü", "user"},
		{strings.Repeat("a", 60), strings.Repeat("a", 28)},
	} {
		u := request.User{URN: urn.URN{Authority: "example.org", Type: urn.User, Name: test.name}}
		if got := assignLogins([]request.User{u}, nil, []string{"root"})[0].Login; got != test.want {
			t.Errorf("account of %q is %q, want %q", test.name, got, test.want)
		}
	}
	two := []request.User{{URN: alice}, {URN: urn.MustParse("urn:publicid:IDN+other.org+user+alice")}}
	first := assignLogins(two, nil, nil)
	if first[0].Login == first[1].Login {
		t.Error("two users share an account")
	}
	again := assignLogins(two[1:], first, nil)
	if again[0].Login != first[1].Login {
		t.Errorf("a user's account changed from %q to %q", first[1].Login, again[0].Login)
	}
}
