// Package v3 speaks version 3 of the GENI AM API: it turns its calls into
// operations of the aggregate, and what those return into its structs.
package v3

import (
	"context"
	"encoding/json"
	"errors"

	"croft/aggregate"
	"croft/am/wire"
	"croft/credentials"
	"croft/slivers"
)

// API answers the calls of version 3.
type API struct {
	Service *aggregate.Service
	Session wire.Session

	// Strict has a sliver that is not there fail also a call with best effort,
	// and Describe of a slice that has nothing here, as the Federation AM API
	// wants it.
	Strict bool
}

// Methods lists the calls by their names on the wire.
func (a *API) Methods() map[string]wire.Method {
	return map[string]wire.Method{
		"GetVersion":               a.getVersion,
		"ListResources":            a.listResources,
		"Allocate":                 a.allocate,
		"Provision":                a.provision,
		"Status":                   a.status,
		"Describe":                 a.describe,
		"PerformOperationalAction": a.act,
		"Renew":                    a.renew,
		"Delete":                   a.delete,
		"Shutdown":                 a.shutdown,
		"ListSlices":               a.listSlices,
		"Update":                   unsupported("Update"),
		"Cancel":                   unsupported("Cancel"),
	}
}

func (a *API) getVersion(_ context.Context, c *wire.Call, params []any) (any, string, error) {
	if err := wire.OptionsOnly(params); err != nil {
		return nil, "", err
	}
	version := map[string]any{
		"geni_api":                    3,
		"geni_api_versions":           c.URLs(),
		"geni_request_rspec_versions": wire.VersionStructs(a.Service.RequestVersions()),
		"geni_ad_rspec_versions":      wire.VersionStructs(a.Service.AdvertisementVersions()),
		"geni_credential_types":       a.Session.CredentialTypes(),
		"geni_single_allocation":      0, // an int: omni's tests insist on it
		"geni_allocate":               "geni_many",
		"geni_am_type":                "croft",
		"urn":                         a.Service.Manager().String(),
	}
	if g := wire.SSHGateway(a.Service.SSHGateway()); g != nil {
		version["croft_ssh_gateway"] = g
	}
	return version, "", nil
}

// unsupported answers a call of the drafts of version 4, which omni knows.
func unsupported(name string) wire.Method {
	return func(context.Context, *wire.Call, []any) (any, string, error) {
		return nil, "", &aggregate.Error{Op: name, Kind: aggregate.Unsupported, Err: errors.New("a call of a later version of the AM API"),
			Hint: "Allocate adds to a slice, Delete takes away"}
	}
}

func (a *API) listResources(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	args, err := wire.NewArgs(params, "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	p, options, err := a.Session.Principal(ctx, c, args)
	if err != nil {
		return nil, "", err
	}
	asked, err := version(options)
	if err != nil {
		return nil, "", err
	}
	available, err := options.Bool("geni_available")
	if err != nil {
		return nil, "", err
	}
	compressed, err := options.Bool("geni_compressed")
	if err != nil {
		return nil, "", err
	}
	ad, err := a.Service.Advertise(ctx, p, aggregate.AdvertiseOptions{Version: asked, Available: available})
	if err != nil {
		return nil, "", err
	}
	return wire.Advertisement(ad, compressed), "", nil
}

func (a *API) allocate(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	args, err := wire.NewArgs(params, "slice_urn", "credentials", "rspec", "options")
	if err != nil {
		return nil, "", err
	}
	slice, err := args.URN("slice_urn")
	if err != nil {
		return nil, "", err
	}
	c.About(slice)
	p, options, err := a.Session.Principal(ctx, c, args)
	if err != nil {
		return nil, "", err
	}
	doc, err := args.String("rspec")
	if err != nil {
		return nil, "", err
	}
	var o aggregate.AllocateOptions
	if o.End, err = options.Time("geni_end_time"); err != nil {
		return nil, "", err
	}
	if o.Inputs, err = options.Struct("croft_inputs"); err != nil {
		return nil, "", err
	}
	if err := options.NoReservation(); err != nil {
		return nil, "", err
	}
	got, err := a.Service.Allocate(ctx, p, slice, []byte(doc), o)
	if err != nil {
		return nil, "", err
	}
	list := make([]any, len(got.Slivers))
	for i, v := range got.Slivers {
		list[i] = sliver(aggregate.Outcome{Sliver: v}, false)
	}
	return map[string]any{"geni_rspec": string(got.Manifest), "geni_slivers": list}, wire.Warnings(got.Warnings), nil
}

// sliver is a sliver as replies of this version carry it.
func sliver(o aggregate.Outcome, operational bool) map[string]any {
	v := o.Sliver
	s := map[string]any{
		"geni_sliver_urn":        v.URN.String(),
		"geni_expires":           wire.Time(v.Expires),
		"geni_allocation_status": string(v.Allocation),
	}
	if v.ClientID != "" {
		s["geni_client_id"] = string(v.ClientID) // as Emulab adds
	}
	if operational {
		s["geni_operational_status"] = string(v.Operational)
	}
	if text := o.Error(); text != "" {
		s["geni_error"] = text
	}
	if list := ports(v); operational && len(list) > 0 {
		s["croft_ports"] = list
	}
	if v.Node != nil && v.Node.HostKey != "" {
		s["croft_host_key"] = v.Node.HostKey
	}
	if len(o.Notes) > 0 {
		notes := make([]any, len(o.Notes))
		for i, n := range o.Notes {
			notes[i] = n
		}
		s["croft_notes"] = notes
	}
	if len(o.Startup) > 0 {
		s["croft_startup"] = steps(o.Startup, false)
	}
	return s
}

func sliverList(outcomes []aggregate.Outcome, operational bool) []any {
	list := make([]any, len(outcomes))
	for i, o := range outcomes {
		list[i] = sliver(o, operational)
	}
	return list
}

func (a *API) provision(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	b, err := a.begin(ctx, c, params, "urns", "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	o := aggregate.ProvisionOptions{BestEffort: b.bestEffort}
	if o.Version, err = b.version(); err != nil {
		return nil, "", err
	}
	if err := b.options.NoReservation(); err != nil {
		return nil, "", err
	}
	if o.Users, err = b.options.Users(); err != nil {
		return nil, "", err
	}
	if o.End, err = b.options.Time("geni_end_time"); err != nil {
		return nil, "", err
	}
	if err := a.find(ctx, &b, credentials.Provision); err != nil {
		return nil, "", err
	}
	got, err := a.Service.Provision(ctx, b.principal, b.target, o)
	if err != nil {
		return nil, "", err
	}
	return map[string]any{"geni_rspec": string(got.Manifest), "geni_slivers": sliverList(got.Slivers, true)}, "", nil
}

func (a *API) status(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	b, err := a.begin(ctx, c, params, "urns", "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	output, err := b.options.Bool("croft_output")
	if err != nil {
		return nil, "", err
	}
	console, err := b.options.Bool("croft_console")
	if err != nil {
		return nil, "", err
	}
	if err := a.find(ctx, &b, credentials.Status); err != nil {
		return nil, "", err
	}
	got, err := a.Service.Status(ctx, b.principal, b.target, b.bestEffort)
	if err != nil {
		return nil, "", err
	}
	list := sliverList(got, true)
	for _, v := range list {
		if s := v.(map[string]any); s["geni_error"] == nil {
			s["geni_error"] = "" // required in Status
		}
	}
	if output {
		if err := a.addOutput(ctx, &b, got, list); err != nil {
			return nil, "", err
		}
	}
	if console {
		if err := a.addConsoles(ctx, &b, got, list); err != nil {
			return nil, "", err
		}
	}
	return map[string]any{"geni_urn": b.target.Slice.String(), "geni_slivers": list}, "", nil
}

func (a *API) describe(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	b, err := a.begin(ctx, c, params, "urns", "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	asked, err := b.version()
	if err != nil {
		return nil, "", err
	}
	compressed, err := b.options.Bool("geni_compressed")
	if err != nil {
		return nil, "", err
	}
	outputs, err := b.options.Bool("croft_outputs")
	if err != nil {
		return nil, "", err
	}
	if err := a.find(ctx, &b, credentials.Describe); err != nil {
		return nil, "", err
	}
	got, err := a.Service.Describe(ctx, b.principal, b.target, asked)
	if err != nil {
		return nil, "", err
	}
	if a.Strict && len(got.Slivers) == 0 {
		return nil, "", &aggregate.Error{Op: "describe", Item: got.Slice.String(), Kind: aggregate.NotFound,
			Err: errors.New("the slice has no slivers here")}
	}
	text, err := wire.Document(got.Manifest, compressed)
	if err != nil {
		return nil, "", err
	}
	value := map[string]any{"geni_rspec": text, "geni_urn": got.Slice.String(), "geni_slivers": sliverList(got.Slivers, true)}
	if outputs {
		of, err := a.Service.Outputs(ctx, b.principal, got.Slice)
		if err != nil {
			return nil, "", err
		}
		// As JSON: XML-RPC has neither nothing nor large numbers.
		text, err := json.Marshal(of)
		if err != nil {
			return nil, "", err
		}
		value["croft_outputs"] = string(text)
	}
	return value, "", nil
}

func (a *API) act(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	b, err := a.begin(ctx, c, params, "urns", "credentials", "action", "options")
	if err != nil {
		return nil, "", err
	}
	action, err := b.args.String("action")
	if err != nil {
		return nil, "", err
	}
	o := aggregate.ActOptions{BestEffort: b.bestEffort}
	if o.Users, err = b.options.Users(); err != nil {
		return nil, "", err
	}
	if err := a.find(ctx, &b, credentials.PerformOperationalAction); err != nil {
		return nil, "", err
	}
	got, err := a.Service.Act(ctx, b.principal, b.target, aggregate.Action(wire.Brief(action)), o)
	if err != nil {
		return nil, "", err
	}
	return sliverList(got, true), "", nil
}

func (a *API) renew(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	b, err := a.begin(ctx, c, params, "urns", "credentials", "expiration_time", "options")
	if err != nil {
		return nil, "", err
	}
	end, err := b.args.Time("expiration_time")
	if err != nil {
		return nil, "", err
	}
	o := aggregate.RenewOptions{BestEffort: b.bestEffort}
	if o.AsLate, err = b.options.Bool("geni_extend_alap"); err != nil {
		return nil, "", err
	}
	if err := a.find(ctx, &b, credentials.Renew); err != nil {
		return nil, "", err
	}
	got, err := a.Service.Renew(ctx, b.principal, b.target, end, o)
	if err != nil {
		return nil, "", err
	}
	return sliverList(got, true), "", nil
}

func (a *API) delete(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	b, err := a.begin(ctx, c, params, "urns", "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	if err := a.find(ctx, &b, credentials.Delete); err != nil {
		return nil, "", err
	}
	got, err := a.Service.Delete(ctx, b.principal, b.target, b.bestEffort)
	if err != nil {
		return nil, "", err
	}
	for i := range got {
		got[i].Sliver.Allocation = slivers.Unallocated
	}
	return sliverList(got, false), "", nil
}

func (a *API) shutdown(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	args, err := wire.NewArgs(params, "slice_urn", "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	slice, err := args.URN("slice_urn")
	if err != nil {
		return nil, "", err
	}
	c.About(slice)
	p, _, err := a.Session.Principal(ctx, c, args)
	if err != nil {
		return nil, "", err
	}
	if err := a.Service.Shutdown(ctx, p, slice); err != nil {
		return nil, "", err
	}
	return true, "", nil
}
