package v3

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf8"

	"croft/aggregate"
	"croft/am/wire"
	"croft/slivers"
	"croft/urn"
)

// steps are the steps of a node's start-up graph: Croft's own addition to the
// API, under names that no other has.
func steps(views []aggregate.StepView, output bool) []any {
	list := make([]any, len(views))
	for i, v := range views {
		s := map[string]any{
			"croft_step": string(v.Name), "croft_kind": string(v.Kind), "croft_state": string(v.State),
			"croft_attempt": v.Attempt, "croft_status": v.Status,
		}
		if v.Reason != "" {
			s["croft_reason"] = plain(v.Reason)
		}
		if !v.Started.IsZero() {
			s["croft_started"] = wire.Time(v.Started)
		}
		if !v.Ended.IsZero() {
			s["croft_ended"] = wire.Time(v.Ended)
		}
		if v.Alive {
			s["croft_alive"] = true
		}
		if len(v.Outputs) > 0 {
			outputs := make(map[string]any, len(v.Outputs))
			for name, value := range v.Outputs {
				outputs[plain(name)] = plain(value)
			}
			s["croft_outputs"] = outputs
		}
		if output {
			s["croft_output"] = plain(string(v.Text()))
		}
		list[i] = s
	}
	return list
}

// ports are where ports of a node are reached from outside.
func ports(v slivers.Sliver) []any {
	if v.Node == nil {
		return nil
	}
	var list []any
	for _, p := range v.Node.Ports {
		if p.Public.Host != "" {
			list = append(list, map[string]any{"croft_name": plain(p.Name), "croft_number": p.Number,
				"croft_public_host": p.Public.Host, "croft_public_port": p.Public.Port, "croft_url": plain(p.Link())})
		}
	}
	return list
}

// addOutput adds what the steps have written.
func (a *API) addOutput(ctx context.Context, b *begun, got []aggregate.Outcome, list []any) error {
	t := b.target
	t.Slivers = nil
	for _, o := range got {
		if len(o.Startup) > 0 {
			t.Slivers = append(t.Slivers, o.Sliver.URN)
		}
	}
	if len(t.Slivers) == 0 {
		return nil
	}
	views, err := a.Service.Startup(ctx, b.principal, t, true)
	if err != nil {
		return err
	}
	of := map[urn.URN][]aggregate.StepView{}
	for _, v := range views {
		of[v.Sliver.Canonical()] = append(of[v.Sliver.Canonical()], v)
	}
	for i, o := range got {
		if views := of[o.Sliver.URN.Canonical()]; len(views) > 0 {
			list[i].(map[string]any)["croft_startup"] = steps(views, true)
		}
	}
	return nil
}

// maxConsole bounds what is told of a console: its end.
const maxConsole = 256 << 10

// addConsoles adds the consoles of nodes.
func (a *API) addConsoles(ctx context.Context, b *begun, got []aggregate.Outcome, list []any) error {
	for i, o := range got {
		if o.Sliver.Node == nil || o.Err != nil {
			continue
		}
		var text bytes.Buffer
		if err := a.Service.Console(ctx, b.principal, b.target.Slice, o.Sliver.URN, &text); err != nil {
			return err
		}
		end := text.Bytes()
		if cut := len(end) - maxConsole; cut > 0 {
			end = end[cut:]
		}
		list[i].(map[string]any)["croft_console"] = plain(string(end))
	}
	return nil
}

// plain is text as XML can hold it.
func plain(text string) string {
	ok := func(r rune) bool {
		return r == '\t' || r == '\n' || r >= ' ' && r != 0xfffe && r != 0xffff && r != utf8.RuneError
	}
	return strings.Map(func(r rune) rune {
		if ok(r) {
			return r
		}
		if r == '\r' {
			return '\n'
		}
		return utf8.RuneError
	}, text)
}
