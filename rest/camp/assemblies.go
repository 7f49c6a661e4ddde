package camp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"croft/aggregate"
	"croft/languages/camp"
	"croft/request"
	"croft/rest"
	"croft/slivers"
	"croft/urn"
)

// assemblyRecord is a running application.
type assemblyRecord struct {
	Template string // its id
	Name     string
	Created  time.Time
	Document []byte // of the template, as it was
	Ending   bool
}

// assembly is a running application and how its slivers are.
type assembly struct {
	assemblyRecord
	id       string
	slice    urn.URN
	plan     *camp.Plan
	request  *request.Request
	outcomes []aggregate.Outcome
	skew     string
	state    string
	derived  bool // this face has not made it: it has no plan and no request
}

// The states of assemblies and their components.
const (
	running   = "RUNNING"
	starting  = "STARTING"
	suspended = "SUSPENDED"
	stopping  = "SUSPENDING"
	failed    = "FAILED"
	gone      = "GONE"
)

func (c *call) slice(id string) urn.URN {
	return urn.URN{Authority: c.authority, Type: urn.Slice, Name: id}
}

func (c *call) assembly(id string) (*assembly, error) {
	a := &assembly{id: id, slice: c.slice(id), skew: none, state: running}
	err := c.Records.Get(c.owner, "assembly-"+id, &a.assemblyRecord)
	if errors.Is(err, rest.ErrNoRecord) {
		return c.derivedAssembly(id)
	}
	if err != nil {
		return nil, err
	}
	if a.plan, a.request, err = c.understand(a.Document); err != nil {
		return nil, err
	}
	if a.Ending {
		left, err := c.Service.Slivers(c.ctx, a.slice)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		if len(left) == 0 {
			if err := c.forget(a); err != nil {
				return nil, err
			}
			return nil, rest.ErrNoRecord
		}
		a.skew, a.state = destroying, gone
		return a, nil
	}
	a.outcomes, err = c.Service.Status(c.ctx, c.principal, aggregate.Target{Slice: a.slice}, true)
	if isMissing(err) { // deleted by another way in, or its lease has run out
		if err := c.forget(a); err != nil {
			return nil, err
		}
		return nil, rest.ErrNoRecord
	}
	if err != nil {
		return nil, err
	}
	a.skew, a.state = stateOf(a.outcomes)
	return a, nil
}

func isMissing(err error) bool {
	var refused *aggregate.Error
	return errors.As(err, &refused) && refused.Kind == aggregate.NotFound || errors.Is(err, slivers.ErrNotFound)
}

// stateOf is the skew and the state of slivers together: the one that is
// furthest from running.
func stateOf(list []aggregate.Outcome) (skew, state string) {
	order := []string{failed, starting, stopping, suspended, running}
	worst := len(order) - 1
	for _, o := range list {
		if o.Sliver.Node != nil || o.Sliver.Operational == slivers.Failed {
			worst = min(worst, slices.Index(order, sliverState(o)))
		}
	}
	switch state = order[worst]; state {
	case failed:
		return unknown, state
	case starting:
		return creating, state
	}
	return none, state
}

func sliverState(o aggregate.Outcome) string {
	v := o.Sliver
	switch v.Operational {
	case slivers.Failed:
		return failed
	case slivers.PendingAllocation, slivers.Configuring:
		return starting
	case slivers.Stopping:
		return stopping
	case slivers.NotReady:
		if v.AutoStart && v.Goal != slivers.NoGoal {
			return starting
		}
		return suspended
	}
	for _, s := range o.Startup {
		if !s.State.Ended() {
			return starting
		}
	}
	return running
}

// expires is when the first of the assembly's slivers does; "" if it has none.
func (a *assembly) expires() string {
	var first time.Time
	for _, o := range a.outcomes {
		if first.IsZero() || o.Sliver.Expires.Before(first) {
			first = o.Sliver.Expires
		}
	}
	if first.IsZero() {
		return ""
	}
	return first.UTC().Format(time.RFC3339)
}

// components links to the nodes of the assembly.
func (a *assembly) components(c *call) []link {
	var list []link
	for _, o := range a.outcomes {
		if o.Sliver.Node != nil {
			path := "platformComponents/" + a.id + "/" + string(o.Sliver.ClientID)
			list = append(list, c.link(path, c.named(path, string(o.Sliver.ClientID))))
		}
	}
	return list
}

// ofAssembly is an assembly or a part of one.
func (c *call) ofAssembly(path string, part []string) (*resource, error) {
	if len(part) < 2 {
		return nil, missing(path)
	}
	a, err := c.assembly(part[1])
	if err != nil {
		return nil, err
	}
	base := "assemblies/" + a.id
	up := c.link(base, c.named(base, a.Name))
	switch {
	case a.derived && part[0] != "platformComponents":
		return c.ofDerived(path, part, a)
	case part[0] == "assemblies" && len(part) == 2:
		var parts []link
		for _, x := range a.plan.Artifacts {
			parts = append(parts, c.link("applicationComponents/"+a.id+"/"+x.ID, x.Label()))
		}
		from := "assemblyTemplates/" + a.Template
		r, err := c.make(path, "assembly", a.Name, a.plan.Description, a.Created, map[string]any{
			"applicationComponents": parts, "assemblyTemplate": c.link(from, c.named(from, a.plan.Name)),
			"resourceState": map[string]string{"state": a.state}, "representationSkew": a.skew,
			"org.testbed:slice": a.slice.String(), "org.testbed:pdpUri": c.url(c.r, path+"/pdp"), "org.testbed:expires": a.expires(),
		})
		if err == nil {
			r.assembly = a
		}
		return r, err
	case part[0] == "applicationComponents" && len(part) == 3:
		for i := range a.plan.Artifacts {
			if x := &a.plan.Artifacts[i]; x.ID == part[2] {
				return c.applicationComponent(path, a, x, up)
			}
		}
	case part[0] == "platformComponents" && len(part) == 3:
		for _, o := range a.outcomes {
			if o.Sliver.Node != nil && string(o.Sliver.ClientID) == part[2] {
				return c.platformComponent(path, a, o)
			}
		}
	}
	return nil, missing(path)
}

func (c *call) applicationComponent(path string, a *assembly, x *camp.Artifact, up link) (*resource, error) {
	var uses, on []link
	for _, need := range x.Requirements {
		if requirementPath(&need) == "applicationComponentRequirements" {
			uses = append(uses, c.link("applicationComponents/"+a.id+"/"+need.Service, need.Service))
		}
	}
	state := running
	for _, o := range a.outcomes {
		for _, s := range o.Startup {
			if !strings.HasSuffix(string(s.Name), "."+x.ID) {
				continue
			}
			node := "platformComponents/" + a.id + "/" + string(o.Sliver.ClientID)
			on = append(on, c.link(node, c.named(node, string(o.Sliver.ClientID))))
			switch {
			case s.State == slivers.StepFailed || s.State == slivers.StepSkipped:
				state = failed
			case !s.State.Ended() && state == running:
				state = starting
			}
		}
	}
	if a.state == suspended || a.state == gone {
		state = a.state
	}
	return c.make(path, "applicationComponent", x.Label(), x.Description, a.Created, map[string]any{
		"assembly": up, "applicationComponents": uses, "platformComponents": on,
		"resourceState": map[string]string{"state": state}, "tags": unlessEmpty(x.Tags),
	})
}

func (c *call) platformComponent(path string, a *assembly, o aggregate.Outcome) (*resource, error) {
	v := o.Sliver
	own := map[string]any{"resourceState": map[string]string{"state": sliverState(o)}, "org.testbed:sliver": v.URN.String()}
	if v.Node.Login.Host != "" {
		own["externalManagementResource"] = fmt.Sprintf("ssh://%s:%d", v.Node.Login.Host, v.Node.Login.Port)
	}
	var addresses []string
	for _, i := range v.Node.Interfaces {
		for _, p := range i.Addresses {
			addresses = append(addresses, p.String())
		}
	}
	own["org.testbed:addresses"] = unlessEmpty(addresses)
	return c.make(path, "platformComponent", string(v.ClientID), "", a.Created, own)
}

// instantiate makes an assembly of a template. The body may be empty, or an
// object with a name and a description.
func (c *call) instantiate(r *resource, body []byte) error {
	_, id, _ := strings.Cut(r.path, "/")
	t, err := c.template(id)
	if err != nil {
		return err
	}
	if len(t.Plan.Artifacts) == 0 {
		return rest.Refuse(http.StatusBadRequest, "a template without applicationComponentTemplates cannot be instantiated")
	}
	if err := c.room("assembly"); err != nil {
		return err
	}
	x := assemblyRecord{Template: id, Created: c.Clock().UTC(), Document: t.Document}
	x.Name, _ = r.attributes["name"].(string)
	if len(strings.TrimSpace(string(body))) > 0 {
		o, err := object(body)
		if err != nil {
			return err
		}
		if name, ok := o["name"].(string); ok && name != "" && len(name) <= maxText {
			x.Name = name
		}
	}
	name, err := c.newID()
	if err != nil {
		return err
	}
	slice := c.slice(name)
	// What was begun is finished or undone also when the caller has gone. The
	// record comes first: there are no slivers without one.
	ctx := context.WithoutCancel(c.ctx)
	if err := c.Records.Put(c.owner, "assembly-"+name, &x); err != nil {
		return err
	}
	end := c.Clock().Add(c.Service.Leases.ProvisionedMax)
	got, err := c.Service.Allocate(ctx, c.principal, slice, t.Document, aggregate.AllocateOptions{End: end})
	if err == nil {
		var users []request.User
		if len(c.id.Keys) > 0 {
			users = []request.User{{URN: c.id.Member, Keys: c.id.Keys}}
		}
		_, err = c.Service.Provision(ctx, c.principal, aggregate.Target{Slice: slice}, aggregate.ProvisionOptions{Users: users, End: end, Start: true, Version: got.Version})
		if err != nil {
			_, undo := c.Service.Delete(ctx, c.principal, aggregate.Target{Slice: slice}, true)
			err = errors.Join(err, undo)
		}
	}
	if err != nil {
		return errors.Join(err, c.Records.Delete(c.owner, "assembly-"+name))
	}
	return c.made("assemblies/" + name)
}

// act stops or starts the nodes of an assembly.
func (c *call) act(a *assembly, action aggregate.Action) error {
	target := aggregate.Target{Slice: a.slice}
	for _, o := range a.outcomes {
		if o.Sliver.Node != nil {
			target.Slivers = append(target.Slivers, o.Sliver.URN)
		}
	}
	if len(target.Slivers) == 0 {
		return rest.Refuse(http.StatusConflict, "the assembly has no nodes any more")
	}
	_, err := c.Service.Act(c.ctx, c.principal, target, action, aggregate.ActOptions{})
	return err
}

// end gives the slivers of an assembly back. It is gone when they are.
func (c *call) end(a *assembly) error {
	ctx := context.WithoutCancel(c.ctx)
	a.Ending = true
	if !a.derived {
		if err := c.Records.Put(c.owner, "assembly-"+a.id, &a.assemblyRecord); err != nil {
			return err
		}
	}
	_, err := c.Service.Delete(ctx, c.principal, aggregate.Target{Slice: a.slice}, true)
	if err != nil && !isMissing(err) {
		return err
	}
	left, err := c.Service.Slivers(ctx, a.slice)
	if (err == nil || isMissing(err)) && (len(left) == 0 || a.derived) {
		return c.forget(a)
	}
	return nil
}

func (c *call) forget(a *assembly) error {
	if err := c.drop("assemblies/"+a.id, "applicationComponents/"+a.id, "platformComponents/"+a.id); err != nil {
		return err
	}
	return c.Records.Delete(c.owner, "assembly-"+a.id)
}
