package aggregate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"croft/aggregate/aggregatetest/surroundings"
	"croft/credentials"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// up allocates and provisions a request for a slice, whose key is a user's.
func (b *bed) up(p *credentials.Principal, slice urn.URN, document string, users ...request.User) map[request.ClientID]slivers.Sliver {
	b.t.Helper()
	ctx := context.Background()
	if _, err := b.Allocate(ctx, p, slice, []byte(document), AllocateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Users: users, Start: true, Version: geni3}); err != nil {
		b.t.Fatal(err)
	}
	return b.states(slice)
}

func TestKeysLeadToTheirNodes(t *testing.T) {
	b := newBed(t)
	ctx := context.Background()
	p, one := b.principal("alice", "one")
	q, two := b.principal("alice", "two")
	key, other := surroundings.NewKey(t), surroundings.NewKey(t)
	alice := urn.MustParse("urn:publicid:IDN+example.org+user+alice")
	bob := urn.MustParse("urn:publicid:IDN+example.org+user+bob")
	states := b.up(p, one, twoNodes, request.User{URN: alice, Keys: []string{key + " alice@laptop"}}, request.User{URN: bob, Keys: []string{other}})
	b.up(q, two, strings.ReplaceAll(twoNodes, `"a"`, `"A_1"`), request.User{URN: alice, Keys: []string{key}})
	if _, err := b.Allocate(ctx, p, one, []byte(header+`<node client_id="later"><sliver_type name="simulated"/></node></rspec>`), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	if who, err := b.Members(ctx, other); err != nil || len(who) != 1 || !who[0].Equal(bob) {
		t.Errorf("the other key is of %v, %v", who, err)
	}
	if who, err := b.Members(ctx, surroundings.NewKey(t)); err != nil || len(who) != 0 {
		t.Errorf("a key that nobody gave is of %v, %v", who, err)
	}
	names, err := b.Reachable(ctx, key)
	odd := b.states(two)["A_1"].URN.Name + ".example.org"
	if err != nil || strings.Join(names, " ") != strings.Join(sorted("a.one.example.org", "b.one.example.org", "b.two.example.org", odd), " ") {
		t.Errorf("the key leads to %q, %v", names, err)
	}
	for _, test := range []struct {
		name, key, to string
		port          int
		want          urn.URN
		kind          Kind
	}{
		{"manifest's name", key, "a.one.example.org", 22, states["a"].URN, 0},
		{"in capitals, with a dot", key, "A.One.Example.org.", 22, states["a"].URN, 0},
		{"short", key, "b.one", 22, states["b"].URN, 0},
		{"sliver", key, states["b"].URN.Name, 22, states["b"].URN, 0},
		{"client_id that is no host name", key, "A_1.two", 22, b.states(two)["A_1"].URN, 0},
		{"named by its sliver", key, odd, 22, b.states(two)["A_1"].URN, 0},
		{"somebody else's slice", other, "b.two", 22, urn.URN{}, NotFound},
		{"link", key, states["l"].URN.Name, 22, urn.URN{}, NotFound},
		{"not provisioned", key, "later.one", 22, urn.URN{}, NotFound},
		{"no name", key, "", 22, urn.URN{}, NotFound},
		{"node alone", key, "a", 22, urn.URN{}, NotFound},
		{"address", key, "10.1.1.1", 22, urn.URN{}, NotFound},
		{"loopback", key, "127.0.0.1", 22, urn.URN{}, NotFound},
		{"another port", key, "b.one", 80, urn.URN{}, Forbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, err := b.Reach(ctx, test.key, test.to, test.port)
			if test.want.IsZero() {
				wantKind(t, test.to, err, test.kind)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer v.Leave()
			if !v.Sliver.Equal(test.want) || !v.Member.Equal(alice) || v.Open.Err() != nil {
				t.Errorf("leads to %s for %s, %v", v.Sliver, v.Member, v.Open.Err())
			}
		})
	}
	if len(b.access.visits) != 0 {
		t.Errorf("%d visits are left", len(b.access.visits))
	}
}

func sorted(list ...string) []string {
	slices.Sort(list)
	return list
}

func TestLoginNames(t *testing.T) {
	b := newBed(t)
	for _, test := range []struct{ node, slice, want string }{
		{"node0", "urn:publicid:IDN+example.org+slice+exp", "node0.exp.example.org"},
		{"node0", "urn:publicid:IDN+Example.ORG+slice+exp", "node0.exp.example.org"},
		{"node0", "urn:publicid:IDN+example.org:proj:sub+slice+exp", "node0.exp.sub.proj.example.org"},
		{"node0", "urn:publicid:IDN+other.net:proj+slice+exp", "node0.exp.proj.other.net.example.org"},
		{"a.b", "urn:publicid:IDN+example.org+slice+exp", "s1.example.org"},
		{"a", "urn:publicid:IDN+example.org+slice+b.exp", "s1.example.org"},
		{"Node", "urn:publicid:IDN+example.org+slice+exp", "s1.example.org"},
		{"a b", "urn:publicid:IDN+example.org+slice+exp", "s1.example.org"},
		{"", "urn:publicid:IDN+example.org+slice+exp", "s1.example.org"},
		{strings.Repeat("x", 60), "urn:publicid:IDN+example.org+slice+exp", "s1.example.org"},
		{"a", "urn:publicid:IDN+" + strings.Repeat("other.", 60) + "net+slice+exp", "s1.example.org"},
	} {
		v := slivers.Sliver{URN: urn.MustParse("urn:publicid:IDN+example.org+sliver+s1"), ClientID: request.ClientID(test.node), Slice: urn.MustParse(test.slice)}
		if got := b.loginName(&v); got != test.want {
			t.Errorf("%s of %s is called %q, want %q", test.node, test.slice, got, test.want)
		}
	}
}

// A visit ends with what allowed it.
func TestVisitsAreCut(t *testing.T) {
	alice := urn.MustParse("urn:publicid:IDN+example.org+user+alice")
	for _, test := range []struct {
		name string
		do   func(b *bed, p *credentials.Principal, slice urn.URN) error
		why  error
	}{
		{"deleted", func(b *bed, p *credentials.Principal, slice urn.URN) error {
			_, err := b.Delete(context.Background(), p, Target{Slice: slice}, false)
			return err
		}, errGone},
		{"expired", func(b *bed, _ *credentials.Principal, _ urn.URN) error {
			b.clock.Advance(25 * time.Hour)
			b.wakeExpiry()
			return nil
		}, errGone},
		{"shut down", func(b *bed, _ *credentials.Principal, slice urn.URN) error {
			return b.Halt(context.Background(), slice)
		}, errShutDown},
		{"freed by the operator", func(b *bed, _ *credentials.Principal, slice urn.URN) error {
			_, err := b.Free(context.Background(), slice, false)
			return err
		}, errGone},
		{"key taken away", func(b *bed, p *credentials.Principal, slice urn.URN) error {
			_, err := b.Act(context.Background(), p, Target{Slice: slice}, UpdateUsers, ActOptions{Users: []request.User{{URN: alice, Keys: []string{surroundings.NewKey(b.t)}}}})
			return err
		}, errKeyGone},
		{"the service ends", func(b *bed, _ *credentials.Principal, _ urn.URN) error {
			b.Close()
			return nil
		}, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			p, slice := b.principal("alice", "cut")
			key := surroundings.NewKey(t)
			b.up(p, slice, twoNodes, request.User{URN: alice, Keys: []string{key}})
			v, err := b.Reach(context.Background(), key, "a.cut", 22)
			if err != nil {
				t.Fatal(err)
			}
			defer v.Leave()
			if err := test.do(b, p, slice); err != nil {
				t.Fatal(err)
			}
			select {
			case <-v.Open.Done():
			case <-time.After(30 * time.Second):
				t.Fatal("the visit goes on")
			}
			if why := context.Cause(v.Open); !errors.Is(why, test.why) {
				t.Errorf("it ended because %v, want %v", why, test.why)
			}
			if _, err := b.Reach(context.Background(), key, "a.cut", 22); err == nil && test.name != "the service ends" {
				t.Error("the key still leads there")
			}
		})
	}
}

// A change that keeps the key leaves visits alone.
func TestVisitsSurviveOtherChanges(t *testing.T) {
	b := newBed(t)
	alice := urn.MustParse("urn:publicid:IDN+example.org+user+alice")
	p, slice := b.principal("alice", "stays")
	key := surroundings.NewKey(t)
	b.up(p, slice, twoNodes, request.User{URN: alice, Keys: []string{key}})
	v, err := b.Reach(context.Background(), key, "a.stays", 22)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Leave()
	_, err = b.Act(context.Background(), p, Target{Slice: slice}, UpdateUsers, ActOptions{Users: []request.User{{URN: alice, Keys: []string{key, surroundings.NewKey(t)}}}})
	if err != nil {
		t.Fatal(err)
	}
	b.states(slice)
	if _, err := b.Act(context.Background(), p, Target{Slice: slice}, Restart, ActOptions{}); err != nil {
		t.Fatal(err)
	}
	b.states(slice)
	if _, err := b.Delete(context.Background(), p, Target{Slice: slice, Slivers: []urn.URN{b.states(slice)["b"].URN}}, false); err != nil {
		t.Fatal(err)
	}
	if v.Open.Err() != nil {
		t.Errorf("the visit was cut: %v", context.Cause(v.Open))
	}
}
