package aggregate

import (
	"context"
	"strings"
	"testing"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/drivers"
	"croft/languages"
	"croft/request"
	"croft/slivers"
)

// newPretendingBed is a bed of simulated nodes, whose steps are pretended.
func newPretendingBed(t *testing.T, documents canned) *bed {
	t.Helper()
	b := newStoppedBed(t)
	b.drivers = map[string]drivers.Driver{"simulated": b.driver}
	b.languages = languages.Set{documents}
	b.start()
	return b
}

func simulatedNode(id string) request.Node {
	return request.Node{ID: request.ClientID(id), SliverType: "simulated"}
}

// Steps wait for nodes that are still to be provisioned, whatever is done first.
func TestStepsWaitForProvision(t *testing.T) {
	address := run("a", "a-uses", "true")
	address.Env = []request.Variable{{Name: "X", Value: request.Value{{Attribute: &request.Attribute{Node: "c", Name: request.AttrFirstUser}}}}}
	b := newPretendingBed(t, canned{"doc": {Nodes: []request.Node{simulatedNode("a"), simulatedNode("c")}, Steps: []request.Step{
		run("a", "a-first", "true"), address, run("a", "a-after", "true", "c-one"), run("c", "c-one", "true"),
	}}, "more": {Nodes: []request.Node{simulatedNode("e")}, Steps: []request.Step{
		run("e", "e-one", "true"), run("a", "a-last", "true", "e-one"),
	}}})
	p, slice := b.principal("alice", "waiting")
	ctx := context.Background()
	got, err := b.Allocate(ctx, p, slice, []byte("doc"), AllocateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	provision := func(v slivers.Sliver) {
		t.Helper()
		if _, err := b.Provision(ctx, p, Target{Slice: slice, Slivers: urnsOf([]slivers.Sliver{v})}, ProvisionOptions{Version: geni3, Start: true}); err != nil {
			t.Fatal(err)
		}
	}
	provision(got.Slivers[0])
	b.steps(slice, "the steps of the one node to wait", func(have map[request.StepName]slivers.Step) bool {
		return have["a-first"].State == slivers.StepDone && have["a-uses"].Reason == "waits for node c to be provisioned" &&
			have["a-after"].Reason == "waits for step c-one" && have["c-one"].Reason == "the node is not provisioned"
	})
	provision(got.Slivers[1])
	for name, st := range b.steps(slice, "the end of all steps", allOver) {
		if st.State != slivers.StepDone {
			t.Errorf("%s is %s: %s", name, st.State, st.Reason)
		}
	}
	// What waits for a node that is given back waits no more.
	if got, err = b.Allocate(ctx, p, slice, []byte("more"), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Delete(ctx, p, Target{Slice: slice, Slivers: urnsOf(got.Slivers)}, false); err != nil {
		t.Fatal(err)
	}
	last := b.steps(slice, "the end of all steps", allOver)["a-last"]
	if last.State != slivers.StepSkipped || last.Reason != "step e-one is gone with its node" {
		t.Errorf("a-last is %s: %s", last.State, last.Reason)
	}
}

func TestAllocateRefusesWrongGraphs(t *testing.T) {
	badUser, badKey := simulatedNode("a"), simulatedNode("a")
	badUser.Users = []request.User{{Login: "ok", Keys: []string{"no key"}}}
	badKey.Users = []request.User{{Login: "ok", Keys: []string{surroundings.NewKey(t) + " x\nssh-rsa y"}}}
	b := newPretendingBed(t, canned{
		"circle": {Nodes: []request.Node{simulatedNode("a")}, Steps: []request.Step{run("a", "x", "true", "y"), run("a", "y", "true", "x")}},
		"nobody": {Nodes: []request.Node{simulatedNode("a")}, Steps: []request.Step{run("c", "x", "true")}},
		"user":   {Nodes: []request.Node{badUser}}, "key": {Nodes: []request.Node{badKey}},
		"good":  {Nodes: []request.Node{simulatedNode("a")}, Steps: []request.Step{run("a", "x", "true")}},
		"again": {Nodes: []request.Node{simulatedNode("c")}, Steps: []request.Step{run("c", "x", "true")}},
	})
	p, slice := b.principal("alice", "wrong")
	ctx := context.Background()
	for document, says := range map[string]string{
		"circle": "wait for each other", "nobody": `no node "c"`, "user": "not a public key", "key": "more than one line",
	} {
		_, err := b.Allocate(ctx, p, slice, []byte(document), AllocateOptions{})
		wantKind(t, document, err, BadArgs)
		if err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error with %q", document, err, says)
		}
	}
	if left, err := b.live(ctx, slice); err != nil || len(left) > 0 {
		t.Errorf("refused documents left %v, %v", left, err)
	}
	if _, err := b.Allocate(ctx, p, slice, []byte("good"), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Allocate(ctx, p, slice, []byte("again"), AllocateOptions{})
	wantKind(t, "a step of a name that is taken", err, BadArgs)
}

// Accounts that a document asks for join those of the call, under the names
// that are wished for.
func TestUsersOfDocuments(t *testing.T) {
	n := simulatedNode("a")
	key, other := surroundings.NewKey(t), surroundings.NewKey(t)
	p0 := request.User{Login: "ubuntu", Keys: []string{key}}
	n.Users = []request.User{p0, {Login: "root", Keys: []string{other}}}
	b := newPretendingBed(t, canned{"doc": {Nodes: []request.Node{n}}})
	p, slice := b.principal("alice", "users")
	_, err := b.Create(context.Background(), p, slice, []byte("doc"), CreateOptions{Users: []request.User{{URN: p.User, Keys: []string{key}}}})
	if err != nil {
		t.Fatal(err)
	}
	var logins []string
	for _, u := range b.states(slice)["a"].Node.Users {
		logins = append(logins, u.Login)
		if len(u.Keys) != 1 || u.URN.IsZero() {
			t.Errorf("user %+v", u)
		}
	}
	if got := strings.Join(logins, " "); got != "alice ubuntu root2" {
		t.Errorf("accounts %q", got)
	}
}

// Who may not see a slice does not see its steps.
func TestStepsAreTheirOwners(t *testing.T) {
	b := newPretendingBed(t, canned{"doc": {Nodes: []request.Node{simulatedNode("a")}, Steps: []request.Step{run("a", "x", "true")}}})
	slice := b.bringUp("private", "doc")
	stranger, _ := b.principal("bob", "another")
	ctx := context.Background()
	node := b.states(slice)["a"]
	_, err := b.Startup(ctx, stranger, Target{Slice: slice}, true)
	wantKind(t, "Startup", err, Forbidden)
	wantKind(t, "FollowStep", b.FollowStep(ctx, stranger, slice, "x", nil), Forbidden)
	wantKind(t, "Console", b.Console(ctx, stranger, slice, node.URN, nil), Forbidden)
	_, err = b.Act(ctx, stranger, Target{Slice: slice}, RerunStartup, ActOptions{})
	wantKind(t, "RerunStartup", err, Forbidden)
	_, err = b.Values(ctx, stranger, slice, nil)
	wantKind(t, "Values", err, Forbidden)
	owner, _ := b.principal("alice", "private")
	wantKind(t, "a step that is not there", b.FollowStep(ctx, owner, slice, "y", nil), NotFound)
	if err := b.FollowStep(ctx, owner, slice, "x", &strings.Builder{}); err != nil {
		t.Error(err)
	}
	var text strings.Builder
	if err := b.Console(ctx, owner, slice, node.URN, &text); err != nil || !strings.Contains(text.String(), "made on") {
		t.Errorf("the console says %q, %v", text.String(), err)
	}
}
