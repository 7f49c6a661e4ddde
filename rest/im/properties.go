package im

import (
	"fmt"
	"net/http"
	"strings"

	"croft/aggregate"
	"croft/rest"
)

// property tells one thing about an infrastructure.
func (c *call) property() error {
	x, unlock, err := c.open()
	if err != nil {
		return err
	}
	defer unlock()
	switch property := c.r.PathValue("property"); property {
	case "state":
		whole, machines := x.states()
		c.reply(c.w, c.r, asJSON, "state", map[string]any{"state": whole, "vm_states": machines})
	case "radl":
		text, err := x.radl()
		if err != nil {
			return err
		}
		c.reply(c.w, c.r, plain, "radl", text)
	case "contmsg":
		text, err := c.contextMessage(x, nil)
		if err != nil {
			return err
		}
		c.reply(c.w, c.r, plain, "contmsg", text)
	case "outputs":
		outputs, err := c.Service.Outputs(c.ctx, c.principal, x.slice)
		if err != nil {
			return err
		}
		c.reply(c.w, c.r, asJSON, "outputs", outputs)
	case "data":
		return c.data(x)
	case "tosca":
		documents, err := c.texts(x)
		if err != nil {
			return err
		}
		for _, d := range documents {
			if tosca(d.MediaType) {
				c.reply(c.w, c.r, plain, "tosca", string(d.Text))
				return nil
			}
		}
		return rest.Refuse(http.StatusConflict, "infrastructure %s was not made from TOSCA", x.ID)
	default:
		return rest.Refuse(http.StatusNotFound, "an infrastructure has no %.40q: it has state, radl, contmsg, outputs, data and tosca", property)
	}
	return nil
}

// data tells all that is kept of an infrastructure. There is nothing secret in
// it.
func (c *call) data(x *infrastructure) error {
	if c.yes("delete") {
		return rest.Refuse(http.StatusConflict, "an infrastructure is not given away with its data: destroy it")
	}
	machines := []map[string]any{}
	for i := range x.Machines {
		m := &x.Machines[i]
		machines = append(machines, map[string]any{"id": m.Number, "name": m.Node, "sliver": m.Sliver.String(), "state": x.state(m)})
	}
	texts, err := c.texts(x)
	if err != nil {
		return err
	}
	documents := []map[string]string{}
	for _, d := range texts {
		documents = append(documents, map[string]string{"media_type": d.MediaType, "text": string(d.Text)})
	}
	c.reply(c.w, c.r, asJSON, "data", map[string]any{
		"id": x.ID, "slice": x.slice.String(), "created": x.Created, "expires": x.expires(), "vms": machines, "documents": documents,
	})
	return nil
}

// contextMessage is what the start-up of machines has said: of one, or of all.
func (c *call) contextMessage(x *infrastructure, one *machineRecord) (string, error) {
	var b strings.Builder
	if one == nil {
		for _, w := range x.Warnings {
			fmt.Fprintf(&b, "Warning: %s\n", w)
		}
	}
	for i := range x.Machines {
		m := &x.Machines[i]
		o, ok := x.live[m.Sliver.Canonical()]
		if !ok || one != nil && one.Number != m.Number {
			continue
		}
		if one == nil {
			fmt.Fprintf(&b, "VM %d (%s): %s\n", m.Number, m.Node, stateOf(o))
		}
		if o.Sliver.Fault != "" {
			fmt.Fprintf(&b, "%s\n", o.Sliver.Fault)
		}
		views, err := c.Service.Startup(c.ctx, c.principal, x.target([]*machineRecord{m}), true)
		if err != nil {
			return "", err
		}
		for _, v := range views {
			b.WriteString(stepText(v))
		}
	}
	return b.String(), nil
}

func stepText(v aggregate.StepView) string {
	text := fmt.Sprintf("%s: %s", v.Name, v.State)
	if v.Reason != "" {
		text += ", " + v.Reason
	}
	text += "\n"
	if out := v.Text(); len(out) > 0 {
		text += string(out)
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
	}
	return text
}
