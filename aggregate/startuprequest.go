package aggregate

import (
	"context"
	"errors"

	"croft/request"
	"croft/slivers"
	"croft/startup"
	"croft/urn"
)

// compileSteps checks what a request says of its nodes beside where they are,
// and its start-up graph against the slice.
func (s *Service) compileSteps(ctx context.Context, slice urn.URN, req *request.Request, have []slivers.Sliver) ([]slivers.Step, error) {
	for i := range req.Nodes {
		users, err := wantedUsers(slice, &req.Nodes[i])
		if err != nil {
			return nil, err
		}
		req.Nodes[i].Users = users
	}
	if len(req.Steps) == 0 {
		return nil, nil
	}
	g, err := s.graph(ctx, slice)
	if err != nil {
		return nil, err
	}
	nodes := startup.Environments{}
	for _, v := range have {
		if v.Node != nil {
			nodes[v.ClientID] = v.Node.Env
		}
	}
	for _, n := range req.Nodes {
		nodes[n.ID] = n.Env
	}
	steps, err := startup.Compile(req.Steps, g.steps, nodes)
	if err != nil {
		e := refuse(BadArgs, "%w", err)
		var p *startup.Problem
		if errors.As(err, &p) {
			e.Item = string(p.Step)
		}
		return nil, e
	}
	return steps, nil
}

// equip gives placed nodes what their request says beside where they are.
func equip(placed []slivers.Sliver, req *request.Request) {
	asked := make(map[request.ClientID]*request.Node, len(req.Nodes))
	for i := range req.Nodes {
		asked[req.Nodes[i].ID] = &req.Nodes[i]
	}
	for i := range placed {
		n := asked[placed[i].ClientID]
		if placed[i].Node == nil || n == nil {
			continue
		}
		f := placed[i].Node
		f.Env, f.Wanted, f.Aliases, f.Preemptible = n.Env, n.Users, n.Aliases, n.Preemptible
		for _, p := range n.Ports {
			f.Ports = append(f.Ports, slivers.Port{Port: p})
		}
	}
}

// placedSteps are the steps whose nodes are there: an optional node that was
// left out takes its steps with it.
func placedSteps(steps []slivers.Step, tasks []request.Step, placed, have []slivers.Sliver) ([]slivers.Step, []request.Step) {
	nodes := map[request.ClientID]*slivers.Sliver{}
	for _, list := range [][]slivers.Sliver{have, placed} {
		for i := range list {
			if list[i].Node != nil {
				nodes[list[i].ClientID] = &list[i]
			}
		}
	}
	var kept []slivers.Step
	var what []request.Step
	for i, st := range steps {
		if v := nodes[st.Node]; v != nil {
			st.Slice, st.Sliver = v.Slice, v.URN
			kept, what = append(kept, st), append(what, tasks[i])
		}
	}
	return kept, what
}
