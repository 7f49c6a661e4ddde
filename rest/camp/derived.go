package camp

import (
	"net/http"
	"slices"
	"strings"

	"croft/aggregate"
	"croft/rest"
	"croft/urn"
)

// others are the slices of the caller's member that this face has not made.
func (c *call) others() ([]aggregate.Held, error) {
	held, err := c.id.Slices(c.ctx, c.Service)
	return slices.DeleteFunc(held, func(h aggregate.Held) bool { return h.URN.Authority.Equal(c.authority) }), err
}

// derivedAssembly is a slice that this face has not made.
func (c *call) derivedAssembly(id string) (*assembly, error) {
	held, err := c.others()
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		if rest.DerivedID(h.URN) != id {
			continue
		}
		a := &assembly{id: id, slice: h.URN, derived: true}
		a.assemblyRecord = assemblyRecord{Template: id, Name: h.URN.Name, Created: h.Created}
		c.principal = c.id.Principal(c.Service.Manager().Authority.Top(), h.URN)
		a.outcomes, err = c.Service.Status(c.ctx, c.principal, aggregate.Target{Slice: h.URN}, true)
		if err != nil {
			return nil, err
		}
		a.skew, a.state = stateOf(a.outcomes)
		return a, nil
	}
	return nil, rest.ErrNoRecord
}

// assemblyIDs are those of the caller's assemblies.
func (c *call) assemblyIDs() (made, derived []string, err error) {
	held, err := c.others()
	for _, h := range held {
		derived = append(derived, rest.DerivedID(h.URN))
	}
	return c.names("assembly"), derived, err
}

// ofDerived is a derived assembly or one of its application components: there
// is one for each node.
func (c *call) ofDerived(path string, part []string, a *assembly) (*resource, error) {
	base := "assemblies/" + a.id
	switch {
	case part[0] == "assemblies" && len(part) == 2:
		parts := []link{}
		for _, o := range a.outcomes {
			if o.Sliver.Node != nil {
				id := string(o.Sliver.ClientID)
				parts = append(parts, c.link("applicationComponents/"+a.id+"/"+id, id))
			}
		}
		from := "assemblyTemplates/" + a.id
		r, err := c.make(path, "assembly", a.Name, derivedFrom(a.slice), a.Created, map[string]any{
			"applicationComponents": parts, "assemblyTemplate": c.link(from, c.named(from, a.Name)),
			"resourceState": map[string]string{"state": a.state}, "representationSkew": a.skew, "org.testbed:slice": a.slice.String(),
			"org.testbed:expires": a.expires(),
		})
		if err == nil {
			r.assembly = a
		}
		return r, err
	case part[0] == "applicationComponents" && len(part) == 3:
		for _, o := range a.outcomes {
			if o.Sliver.Node != nil && string(o.Sliver.ClientID) == part[2] {
				on := "platformComponents/" + a.id + "/" + part[2]
				return c.make(path, "applicationComponent", part[2], "", a.Created, map[string]any{
					"assembly": c.link(base, c.named(base, a.Name)), "platformComponents": []link{c.link(on, c.named(on, part[2]))},
					"resourceState": map[string]string{"state": sliverState(o)},
				})
			}
		}
	}
	return nil, missing(path)
}

func derivedFrom(slice urn.URN) string { return "Made by another interface, as " + slice.String() }

// ofDerivedTemplate is the template of a derived assembly, which has nothing
// that could be instantiated.
func (c *call) ofDerivedTemplate(path, id string) (*resource, error) {
	a, err := c.derivedAssembly(id)
	if err != nil {
		return nil, err
	}
	return c.make(path, "assemblyTemplate", a.Name, derivedFrom(a.slice), a.Created, nil)
}

// noPackage refuses to make a package of what has no plan.
func noPackage(a *assembly) error {
	return rest.Refuse(http.StatusConflict, "assembly %s was made by another interface, as %s: there is no plan of it", a.id, a.slice)
}

// tidy forgets what clients have changed of derived assemblies that are gone.
func (c *call) tidy(derived []string) error {
	all, err := c.edits()
	if err != nil {
		return err
	}
	var gone []string
	for path := range all {
		kind, rest, _ := strings.Cut(path, "/")
		id, _, _ := strings.Cut(rest, "/")
		switch kind {
		case "assemblies", "applicationComponents", "platformComponents", "assemblyTemplates":
			known := slices.Contains(c.names("assembly"), id) || slices.Contains(c.names("template"), id) || slices.Contains(derived, id)
			if !known {
				gone = append(gone, path)
			}
		}
	}
	return c.drop(gone...)
}
