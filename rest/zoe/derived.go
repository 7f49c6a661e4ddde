package zoe

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"croft/aggregate"
	"croft/capacity"
	"croft/languages/zapp"
	"croft/request"
	"croft/rest"
	"croft/slivers"
	"croft/urn"
)

// node is a node of an execution that this face has not made.
type node struct {
	ID      request.ClientID
	Service int64 // its number
}

// instance is a service's node and its number.
type instance struct {
	zapp.Instance
	id int64
}

// derived reports whether the execution was not made by this face.
func (e *execution) derived() bool { return len(e.Nodes) > 0 }

// instances are the nodes that an execution may have. Those of a derived one
// are all that it had.
func (e *execution) instances() []instance {
	var list []instance
	for _, n := range e.Nodes {
		list = append(list, instance{zapp.Instance{Service: &zapp.Service{Name: string(n.ID)}, Node: n.ID, Essential: true}, n.Service})
	}
	if list == nil {
		for i, x := range e.app.Instances() {
			list = append(list, instance{x, e.FirstService + int64(i)})
		}
	}
	return list
}

// adopt gives numbers to the slices of the caller's member that this face has
// not made.
func (c *call) adopt() error {
	held, err := c.id.Slices(c.ctx, c.Service)
	if err != nil {
		return err
	}
	own := c.authority(c.id)
	for _, h := range held {
		if h.URN.Authority.Equal(own) {
			continue
		}
		if err := c.adoptSlice(h); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) adoptSlice(h aggregate.Held) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.executions {
		if e.User == c.self && e.Slice.Equal(h.URN) && !e.Status.ended() {
			return nil
		}
	}
	if len(c.executions) >= maxExecutions {
		return nil // those that there are have to be deleted first
	}
	next := c.ids
	next.Execution++
	e := &execution{
		ID: next.Execution, Name: h.URN.Name, Account: c.id.Account, Member: c.id.Member, Keys: c.id.Keys, User: c.self,
		Slice: h.URN, FirstService: next.Service + 1, Submitted: h.Created.UTC(), Status: starting, app: &zapp.App{},
	}
	if !e.describe(h.Slivers, &next.Service) {
		return nil // it has no nodes
	}
	if err := c.Records.Put(siteRecords, idsRecord, &next); err != nil {
		return err
	}
	c.ids = next
	if err := c.save(e); err != nil {
		return err
	}
	c.executions[e.ID] = e
	c.Wake()
	return nil
}

// describe brings the services of a derived execution to the nodes of its
// slice. Those that are new get the next numbers after last.
func (e *execution) describe(held []slivers.Sliver, last *int64) bool {
	for _, v := range held {
		if v.Node == nil || slices.ContainsFunc(e.Nodes, func(n node) bool { return n.ID == v.ClientID }) {
			continue
		}
		*last++
		e.Nodes = append(e.Nodes, node{v.ClientID, *last})
	}
	if text := derivedZApp(e.Slice, held); text != nil {
		e.Application = text
	}
	return e.derived()
}

// derivedZApp says of nodes what a ZApp would.
func derivedZApp(slice urn.URN, held []slivers.Sliver) json.RawMessage {
	list := []map[string]any{}
	for _, v := range held {
		if v.Node == nil {
			continue
		}
		ports := []map[string]any{}
		for _, p := range v.Node.Ports {
			ports = append(ports, map[string]any{"name": p.Name, "port_number": p.Number, "protocol": p.Protocol, "url_template": p.URL, "proxy": false})
		}
		memory := int64(v.Node.Capacity.Memory) << 20
		cores := float64(v.Node.Capacity.Cores) / float64(capacity.Core)
		list = append(list, map[string]any{
			"name": string(v.ClientID), "image": v.Node.Image.Name, "monitor": false, "total_count": 1, "essential_count": 1, "startup_order": 0,
			"replicas": 1, "command": nil, "resources": map[string]any{
				"memory": map[string]any{"min": memory, "max": memory}, "cores": map[string]any{"min": cores, "max": cores},
			}, "ports": ports, "environment": []any{}, "volumes": []any{}, "labels": []any{},
		})
	}
	if len(list) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{
		"name": strings.ToLower(slice.Name), "version": 3, "will_end": false, "size": len(list), "services": list,
	})
	if err != nil {
		return nil
	}
	return text
}

// follow brings a derived execution to what its slice is.
func (f *Face) follow(ctx context.Context, e *execution) error {
	list, err := f.Service.Status(ctx, f.principal(e), aggregate.Target{Slice: e.Slice}, true)
	if err != nil && !missing(err) {
		return err
	}
	var held []slivers.Sliver
	up := true
	for _, o := range list {
		held = append(held, o.Sliver)
		if o.Sliver.Node != nil {
			up = up && !o.Sliver.Operational.Waiting()
		}
	}
	// Whose it is can change: nodes of others may have come.
	theirs := func(v slivers.Sliver) bool { return v.Node != nil && !v.Node.Owner.Equal(e.Member) }
	if !slices.ContainsFunc(held, func(v slivers.Sliver) bool { return v.Node != nil }) ||
		!f.faceMade(e) && slices.ContainsFunc(held, theirs) {
		return f.change(e.ID, func(e *execution) { e.Status, e.Ended = terminated, f.Clock().UTC() })
	}
	now := *e
	now.Nodes = slices.Clone(e.Nodes)
	f.mu.Lock()
	last := f.ids.Service
	now.describe(held, &last)
	if last != f.ids.Service {
		next := f.ids
		next.Service = last
		err = f.Records.Put(siteRecords, idsRecord, &next)
		if err == nil {
			f.ids = next
		}
	}
	f.mu.Unlock()
	if err != nil && !missing(err) {
		return err
	}
	if up && e.Status == starting {
		now.Status, now.Started = running, f.Clock().UTC()
	}
	if len(now.Nodes) == len(e.Nodes) && string(now.Application) == string(e.Application) && now.Status == e.Status {
		return nil
	}
	return f.change(e.ID, func(o *execution) {
		o.Nodes, o.Application = now.Nodes, now.Application
		if o.Status == starting {
			o.Status, o.Started = now.Status, now.Started
		}
	})
}

// faceMade reports whether a face made the slice of an execution.
func (f *Face) faceMade(e *execution) bool {
	return slices.ContainsFunc(rest.Authorities(f.Service.Manager().Authority.Top(), e.Member), e.Slice.Authority.Equal)
}

// sees refuses a derived execution whose slice is no more the caller's.
func (c *call) sees(e *execution) error {
	if !e.derived() || e.Status.ended() || e.Status == cleaning {
		return nil
	}
	held, err := c.id.Slices(c.ctx, c.Service)
	if err == nil && !slices.ContainsFunc(held, func(h aggregate.Held) bool { return h.URN.Equal(e.Slice) }) {
		err = rest.Refuse(http.StatusNotFound, "No such execution: %d", e.ID)
	}
	return err
}
