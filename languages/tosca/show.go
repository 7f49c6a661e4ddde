package tosca

import (
	"croft/languages/tosca/model"
	"croft/languages/tosca/picture"
	"croft/languages/tosca/values"
)

// Shown is a resolved service, for people and scripts.
type Shown struct {
	Inputs  map[string]any `json:"inputs,omitempty"`
	Nodes   []ShownNode    `json:"nodes"`
	Groups  []ShownGroup   `json:"groups,omitempty"`
	Outputs map[string]any `json:"outputs,omitempty"`
}

// ShownNode is a node of a service.
type ShownNode struct {
	Name          string                    `json:"name"`
	Type          string                    `json:"type"`
	Count         int64                     `json:"count"`
	Directives    []string                  `json:"directives,omitempty"`
	Properties    map[string]any            `json:"properties,omitempty"`
	Capabilities  map[string]map[string]any `json:"capabilities,omitempty"`
	Relationships []ShownRelationship       `json:"relationships,omitempty"`
	Open          []string                  `json:"open,omitempty"` // requirements that the template does not fulfil
}

// ShownRelationship is what a requirement became.
type ShownRelationship struct {
	Requirement string         `json:"requirement"`
	Type        string         `json:"type,omitempty"`
	Node        string         `json:"node"`
	Capability  string         `json:"capability,omitempty"`
	Properties  map[string]any `json:"properties,omitempty"`
}

// ShownGroup is a group of a service.
type ShownGroup struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Members []string `json:"members"`
}

func typeName(t *model.Type) string {
	if t == nil {
		return "?"
	}
	return t.Name
}

// Show lists what a service is made of.
func Show(s *model.Service) *Shown {
	made := &Shown{Inputs: map[string]any{}, Outputs: map[string]any{}}
	for _, name := range s.Inputs.Names {
		if v, ok := s.InputValue(name); ok {
			made.Inputs[name] = values.Plain(v)
		}
	}
	for _, name := range s.Nodes.Names {
		n, _ := s.Nodes.Get(name)
		node := ShownNode{Name: name, Type: typeName(n.Type), Count: 1, Directives: n.Directives, Properties: plainCells(&n.Entity)}
		if c, known := s.CountOf(n); known {
			node.Count = c
		}
		for _, c := range n.Capabilities.Names {
			e, _ := n.Capabilities.Get(c)
			if p := plainCells(e); len(p) > 0 {
				if node.Capabilities == nil {
					node.Capabilities = map[string]map[string]any{}
				}
				node.Capabilities[c] = p
			}
		}
		for _, r := range n.Out {
			node.Relationships = append(node.Relationships, ShownRelationship{
				Requirement: r.Assignment.Name, Type: typeName(r.Type), Node: r.Target.Name, Capability: r.Capability, Properties: plainCells(&r.Entity),
			})
		}
		for _, a := range n.Requirements {
			if !a.Fulfilled {
				node.Open = append(node.Open, a.Name)
			}
		}
		made.Nodes = append(made.Nodes, node)
	}
	for _, name := range s.Groups.Names {
		g, _ := s.Groups.Get(name)
		made.Groups = append(made.Groups, ShownGroup{name, typeName(g.Type), g.Members})
	}
	for _, name := range s.Outputs.Names {
		made.Outputs[name] = values.Plain(s.Output(name))
	}
	return made
}

func plainCells(e *model.Entity) map[string]any {
	made := map[string]any{}
	for _, name := range e.Properties.Names {
		c, _ := e.Properties.Get(name)
		if c.Entry == nil {
			continue
		}
		if c.Def != nil && c.Def.Sensitive {
			made[name] = "(not shown)"
			continue
		}
		made[name] = values.Plain(c.Value(0))
	}
	return made
}

// Draw makes a picture of a service: what a node needs stands below it.
func Draw(s *model.Service, title string) *picture.Graph {
	g := &picture.Graph{Title: title}
	for _, name := range s.Nodes.Names {
		n, _ := s.Nodes.Get(name)
		b := picture.Box{Name: name, Lines: []string{typeName(n.Type)}, Fill: "#eef5ff"}
		switch {
		case n.Type.IsNamed("Compute") || n.Type.IsNamed("Abstract.Compute"):
			b.Fill = "#e4f6e4"
		case n.Type.IsNamed("Network") || n.Type.IsNamed("Port"):
			b.Fill = "#fff3d6"
		}
		if c, known := s.CountOf(n); known && c != 1 {
			b.Lines = append(b.Lines, "× "+values.String(c))
		}
		for _, d := range n.Directives {
			b.Lines = append(b.Lines, "«"+d+"»")
		}
		g.Boxes = append(g.Boxes, b)
		for _, r := range n.Out {
			hosted := r.Type != nil && r.Type.IsNamed("HostedOn")
			g.Arrows = append(g.Arrows, picture.Arrow{From: name, To: r.Target.Name, Label: r.Assignment.Name, Dashed: !hosted})
		}
	}
	return g
}
