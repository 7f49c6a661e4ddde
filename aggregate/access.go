package aggregate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"croft/drivers"
	"croft/rspec"
	"croft/slivers"
	"croft/urn"
)

// Visit is a member's way to a port of a node. It is good until Open ends,
// whose cause says why: the sliver ended, or the key was taken away.
type Visit struct {
	Member urn.URN // who gave the key
	Sliver urn.URN
	Slice  urn.URN
	Name   string // of the node, as manifests have it
	Open   context.Context
	// Dial connects to the port.
	Dial func(context.Context) (net.Conn, error)
	// Leave ends the visit. It has to be called.
	Leave func()
}

// access knows which keys lead to which nodes, and who is on the way through
// the SSH gateway.
type access struct {
	service *Service

	mu     sync.Mutex
	change uint64 // counts the changes of the store
	built  uint64 // the change that doors are of; 0 for none
	doors  map[string][]door
	visits map[urn.URN]map[*visit]bool // by the canonical URN of the sliver
}

// door is a node that a key opens.
type door struct {
	node   *slivers.Sliver
	member urn.URN
}

type visit struct {
	key   string
	port  int
	slice urn.URN
	cut   context.CancelCauseFunc
}

func newAccess(s *Service) *access {
	return &access{service: s, change: 1, visits: map[urn.URN]map[*visit]bool{}}
}

// Why visits end, and why they are refused.
var (
	errGone     = errors.New("the sliver has ended")
	errShutDown = errors.New("the slice has been shut down")
	errKeyGone  = errors.New("the key has been taken away")
)

// opens returns who lets the holder of a key in to a sliver now, or why nobody
// does.
func opens(v *slivers.Sliver, key string, now time.Time) (urn.URN, error) {
	if v.Node == nil || v.Allocation != slivers.Provisioned || v.Goal == slivers.Release || !v.Live(now) {
		return urn.URN{}, errGone
	}
	for _, u := range v.Node.Users {
		if u.Login != "" && slices.Contains(u.Keys, key) {
			return u.URN, nil
		}
	}
	return urn.URN{}, errKeyGone
}

// doorsOf lists the nodes that a key opens now.
func (a *access) doorsOf(ctx context.Context, key string) ([]door, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.built != a.change {
		all, err := a.service.Store.All(ctx)
		if err != nil {
			return nil, err
		}
		known, err := a.service.Store.Slices(ctx)
		if err != nil {
			return nil, err
		}
		down := map[urn.URN]bool{}
		for _, k := range known {
			down[k.URN.Canonical()] = k.Shutdown
		}
		a.doors = map[string][]door{}
		for i := range all {
			v := &all[i]
			if v.Node == nil || v.Allocation != slivers.Provisioned || down[v.Slice.Canonical()] || !a.service.takesLogins(v) {
				continue
			}
			for _, u := range v.Node.Users {
				for _, k := range u.Keys {
					a.doors[k] = append(a.doors[k], door{v, u.URN})
				}
			}
		}
		a.built = a.change
	}
	now := a.service.Clock()
	var open []door
	for _, d := range a.doors[key] {
		if _, err := opens(d.node, key, now); err == nil {
			open = append(open, d)
		}
	}
	return open, nil
}

// Members tells whose a key is: those who have given it to nodes that it opens
// now. A key is the text of an authorized_keys line, type and base64.
func (s *Service) Members(ctx context.Context, key string) ([]urn.URN, error) {
	doors, err := s.access.doorsOf(ctx, key)
	if err != nil {
		return nil, fail("look up a key", nil, err)
	}
	var list []urn.URN
	for _, d := range doors {
		if !slices.ContainsFunc(list, d.member.Equal) {
			list = append(list, d.member)
		}
	}
	return list, nil
}

// Reachable lists the nodes that a key opens now, by the names that manifests
// give them.
func (s *Service) Reachable(ctx context.Context, key string) ([]string, error) {
	doors, err := s.access.doorsOf(ctx, key)
	if err != nil {
		return nil, fail("look up a key", nil, err)
	}
	var names []string
	for _, d := range doors {
		if name := s.loginName(d.node); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// sshPort is where nodes take logins.
const sshPort = 22

// Reach finds the way of a key's holder to a port of a node: by the name that
// manifests give the node, the one that it gives itself, CLIENT_ID.SLICE, or
// the name of its sliver. Nothing is looked up anywhere else.
func (s *Service) Reach(ctx context.Context, key, name string, port int) (*Visit, error) {
	v, err := s.reach(ctx, key, name, port)
	if err != nil {
		return nil, fail("reach", nil, err)
	}
	return v, nil
}

func (s *Service) reach(ctx context.Context, key, name string, port int) (*Visit, error) {
	doors, err := s.access.doorsOf(ctx, key)
	if err != nil {
		return nil, err
	}
	var found []door
	for _, d := range doors {
		if s.isCalled(d.node, name) && !slices.ContainsFunc(found, func(f door) bool { return f.node.URN.Equal(d.node.URN) }) {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 0:
		return nil, refuse(NotFound, "no node %s that this key opens", strconv.Quote(name))
	case len(found) > 1:
		var names []string
		for _, d := range found {
			names = append(names, d.node.URN.Name)
		}
		return nil, refuse(BadArgs, "%d nodes are called %s: name one by its sliver (%s)", len(found), strconv.Quote(name), strings.Join(names, ", "))
	case !portOpen(found[0].node, port):
		return nil, refuse(Forbidden, "port %d of %s is not open through the gateway: %d is, and the ports that the request asked for", port, strconv.Quote(name), sshPort)
	}
	node := found[0].node
	open, cut := context.WithCancelCause(s.ctx)
	k := &visit{key: key, port: port, slice: node.Slice, cut: cut}
	sliver := node.URN.Canonical()
	s.access.enter(sliver, k)
	leave := func() {
		s.access.leave(sliver, k)
		cut(nil)
	}
	// From here on a change ends the visit; what has changed before is seen
	// now.
	member, err := s.access.allowed(ctx, sliver, k)
	if err != nil {
		leave()
		return nil, err
	}
	return &Visit{
		Member: member, Sliver: node.URN, Slice: node.Slice, Name: s.loginName(node), Open: open, Leave: leave,
		Dial: func(ctx context.Context) (net.Conn, error) {
			d, err := s.driver(node)
			if err != nil {
				return nil, err
			}
			c, err := d.Dial(ctx, node.URN, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if errors.Is(err, drivers.ErrNotRunning) {
				return nil, &Error{Kind: Refused, Err: errors.New("the node does not run"), Hint: "start it"}
			}
			return c, err
		},
	}, nil
}

// portOpen reports whether a port of a node is open to those who may log in.
func portOpen(v *slivers.Sliver, port int) bool {
	return port == sshPort || slices.ContainsFunc(v.Node.Ports, func(p slivers.Port) bool {
		return p.Number == port && (p.Protocol == "" || p.Protocol == "tcp")
	})
}

// isCalled reports whether a node has a name.
func (s *Service) isCalled(v *slivers.Sliver, name string) bool {
	name = strings.TrimSuffix(name, ".")
	for _, is := range []string{s.loginName(v), v.Node.Hostname, string(v.ClientID) + "." + v.Slice.Name, v.URN.Name} {
		if is != "" && strings.EqualFold(is, name) {
			return true
		}
	}
	return false
}

// loginName is what manifests call a node that is reached through the gateway:
// node.slice, the slice's projects and authority where it is another's, and
// this authority; the name of the sliver where that says too little.
func (s *Service) loginName(v *slivers.Sliver) string {
	const most = 253 // of a DNS name
	own := s.Inventory().Authority
	name, plain := "", true
	part := func(text string, dots bool) {
		l := label(text)
		plain = plain && l == text && (dots || !strings.Contains(text, "."))
		name += l + "."
	}
	part(string(v.ClientID), false)
	part(v.Slice.Name, false)
	authorities := strings.Split(strings.ToLower(string(v.Slice.Authority)), ":")
	for _, project := range slices.Backward(authorities[1:]) {
		part(project, false)
	}
	if !strings.EqualFold(string(v.Slice.Authority.Top()), string(own.Top())) {
		part(authorities[0], true)
	}
	part(strings.ToLower(string(own.Top())), true)
	if name = strings.TrimSuffix(name, "."); plain && len(name) <= most {
		return name
	}
	return v.URN.Name + "." + label(string(own.Top()))
}

func (a *access) enter(sliver urn.URN, k *visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.visits[sliver] == nil {
		a.visits[sliver] = map[*visit]bool{}
	}
	a.visits[sliver][k] = true
}

func (a *access) leave(sliver urn.URN, k *visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.visits[sliver], k)
	if len(a.visits[sliver]) == 0 {
		delete(a.visits, sliver)
	}
}

// allowed returns who lets a visit in, by what the store says now.
func (a *access) allowed(ctx context.Context, sliver urn.URN, k *visit) (urn.URN, error) {
	found, err := a.service.Store.Find(ctx, []urn.URN{sliver})
	switch {
	case err != nil:
		return urn.URN{}, fmt.Errorf("looking up who may log in: %w", err)
	case len(found) == 0:
		return urn.URN{}, errGone
	}
	if down, err := a.service.isShutdown(ctx, k.slice); err != nil {
		return urn.URN{}, err
	} else if down {
		return urn.URN{}, errShutDown
	}
	return opens(&found[0], k.key, a.service.Clock())
}

// changed looks again at the visits to some slivers, or, if there are none
// given, to those of a slice.
func (a *access) changed(list []urn.URN, slice urn.URN) {
	type suspect struct {
		sliver urn.URN
		*visit
	}
	var suspects []suspect
	a.mu.Lock()
	a.change++
	for _, u := range list {
		for k := range a.visits[u.Canonical()] {
			suspects = append(suspects, suspect{u.Canonical(), k})
		}
	}
	if len(list) == 0 {
		for u, of := range a.visits {
			for k := range of {
				if k.slice.Equal(slice) {
					suspects = append(suspects, suspect{u, k})
				}
			}
		}
	}
	a.mu.Unlock()
	for _, k := range suspects {
		if _, err := a.allowed(context.WithoutCancel(a.service.ctx), k.sliver, k.visit); err != nil {
			k.cut(err)
		}
	}
}

// watchedStore tells access, and those who wait for it, of every change.
type watchedStore struct {
	slivers.Store
	access  *access
	changes *changes
}

func (w watchedStore) Update(ctx context.Context, list []urn.URN, change func([]*slivers.Sliver) error) error {
	err := w.Store.Update(ctx, list, change)
	if err == nil && len(list) > 0 {
		w.access.changed(list, urn.URN{})
		w.changes.tell()
	}
	return err
}

func (w watchedStore) UpdateSteps(ctx context.Context, steps []slivers.StepID, change func([]*slivers.Step) error) error {
	err := w.Store.UpdateSteps(ctx, steps, change)
	if err == nil && len(steps) > 0 {
		w.changes.tell()
	}
	return err
}

func (w watchedStore) SetShutdown(ctx context.Context, slice urn.URN, down bool, at time.Time) error {
	err := w.Store.SetShutdown(ctx, slice, down, at)
	if err == nil {
		w.access.changed(nil, slice)
	}
	return err
}

// gateway is what manifests say of the SSH gateway.
func (s *Service) gateway() rspec.Gateway {
	if s.Gateway.Login.Host == "" {
		return rspec.Gateway{}
	}
	return rspec.Gateway{Login: s.Gateway.Login, User: s.Gateway.User, Name: func(v *slivers.Sliver) string {
		if v.Node == nil || !s.takesLogins(v) {
			return ""
		}
		return s.loginName(v)
	}}
}

// Gateway is the SSH gateway as clients know it.
type Gateway struct {
	Login slivers.Login // its address; zero if there is none
	// User is the account at it that manifests name; "" for that of the node.
	User string
	// HostKey is its public key, as a line of authorized_keys.
	HostKey string
	// Only says that nodes have no login ports of their own.
	Only bool
}

// SSHGateway tells what clients have to know of the SSH gateway; its Login is
// zero if there is none.
func (s *Service) SSHGateway() Gateway { return s.Gateway }
