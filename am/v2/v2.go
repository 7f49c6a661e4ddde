// Package v2 speaks version 2 of the GENI AM API. The slice is its only
// handle: each call is about all slivers of a slice, and a slice has one
// reservation.
package v2

import (
	"context"

	"croft/aggregate"
	"croft/am/wire"
	"croft/credentials"
	"croft/languages"
	"croft/slivers"
	"croft/urn"
)

// API answers the calls of version 2.
type API struct {
	Service *aggregate.Service
	Session wire.Session
}

// Methods lists the calls by their names on the wire.
func (a *API) Methods() map[string]wire.Method {
	return map[string]wire.Method{
		"GetVersion":    a.getVersion,
		"ListResources": a.listResources,
		"CreateSliver":  a.createSliver,
		"SliverStatus":  a.sliverStatus,
		"RenewSliver":   a.renewSliver,
		"DeleteSliver":  a.deleteSliver,
		"Shutdown":      a.shutdown,
	}
}

func (a *API) getVersion(_ context.Context, c *wire.Call, params []any) (any, string, error) {
	if err := wire.OptionsOnly(params); err != nil {
		return nil, "", err
	}
	version := map[string]any{
		"geni_api":                    2,
		"geni_api_versions":           c.URLs(),
		"geni_request_rspec_versions": wire.VersionStructs(a.Service.RequestVersions()),
		"geni_ad_rspec_versions":      wire.VersionStructs(a.Service.AdvertisementVersions()),
		"geni_am_type":                "croft",
		"urn":                         a.Service.Manager().String(),
	}
	if g := wire.SSHGateway(a.Service.SSHGateway()); g != nil {
		version["croft_ssh_gateway"] = g
	}
	return version, "", nil
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
	asked, err := options.RSpecVersion()
	if err != nil {
		return nil, "", err
	}
	version := languages.Version{Type: asked.Type, Version: asked.Version}
	slice, err := options.URN("geni_slice_urn")
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
	if slice.IsZero() {
		ad, err := a.Service.Advertise(ctx, p, aggregate.AdvertiseOptions{Version: version, Available: available})
		if err != nil {
			return nil, "", err
		}
		return wire.Advertisement(ad, compressed), "", nil
	}
	c.About(slice)
	described, err := a.Service.Describe(ctx, p, aggregate.Target{Slice: slice}, version)
	if err != nil {
		return nil, "", err
	}
	// Of a slice that has nothing here, the manifest is empty.
	text, err := wire.Document(described.Manifest, compressed)
	return text, "", err
}

// begin reads what the calls on a slice have in common.
func (a *API) begin(ctx context.Context, c *wire.Call, params []any, names ...string) (*wire.Args, urn.URN, *credentials.Principal, wire.Options, error) {
	args, err := wire.NewArgs(params, names...)
	if err != nil {
		return nil, urn.URN{}, nil, nil, err
	}
	slice, err := args.URN("slice_urn")
	if err != nil {
		return nil, urn.URN{}, nil, nil, err
	}
	c.About(slice)
	p, options, err := a.Session.Principal(ctx, c, args)
	return args, slice, p, options, err
}

func (a *API) createSliver(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	args, slice, p, options, err := a.begin(ctx, c, params, "slice_urn", "credentials", "rspec", "users", "options")
	if err != nil {
		return nil, "", err
	}
	document, err := args.String("rspec")
	if err != nil {
		return nil, "", err
	}
	var o aggregate.CreateOptions
	if o.Users, err = args.Users("users"); err != nil {
		return nil, "", err
	}
	if o.Inputs, err = options.Struct("croft_inputs"); err != nil {
		return nil, "", err
	}
	if o.End, err = options.Time("geni_end_time"); err != nil {
		return nil, "", err
	}
	if err := options.NoReservation(); err != nil {
		return nil, "", err
	}
	created, err := a.Service.Create(ctx, p, slice, []byte(document), o)
	if err != nil {
		return nil, "", err
	}
	return string(created.Manifest), wire.Warnings(created.Warnings), nil
}

func (a *API) sliverStatus(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	_, slice, p, _, err := a.begin(ctx, c, params, "slice_urn", "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	got, err := a.Service.Status(ctx, p, aggregate.Target{Slice: slice}, false)
	if err != nil {
		return nil, "", err
	}
	resources := make([]any, len(got))
	whole := "ready"
	for i, o := range got {
		status := statusOf(o.Sliver)
		whole = worse(whole, status)
		resources[i] = map[string]any{
			"geni_urn": o.Sliver.URN.String(), "geni_status": status, "geni_error": o.Error(),
			"geni_client_id": string(o.Sliver.ClientID), "geni_expires": wire.Time(o.Sliver.Expires),
		}
	}
	status := map[string]any{"geni_urn": slice.String(), "geni_status": whole, "geni_resources": resources}
	if len(got) > 0 {
		first := got[0].Sliver.Expires
		for _, o := range got {
			if o.Sliver.Expires.Before(first) {
				first = o.Sliver.Expires
			}
		}
		status["geni_expires"] = wire.Time(first) // where omni looks for it
	}
	return status, "", nil
}

// statusOf is a sliver's state in the words of version 2. What is only
// allocated, or waits for an action of version 3, is unknown there.
func statusOf(v slivers.Sliver) string {
	switch {
	case v.Operational == slivers.Failed:
		return "failed"
	case v.Allocation != slivers.Provisioned:
		return "unknown"
	case v.Operational == slivers.Ready || v.Operational == slivers.ReadyBusy:
		return "ready"
	case v.Operational.Waiting():
		return "configuring"
	}
	return "unknown"
}

// worse returns the status of a slice that has slivers of both.
func worse(a, b string) string {
	for _, s := range []string{"failed", "unknown", "configuring"} {
		if a == s || b == s {
			return s
		}
	}
	return "ready"
}

func (a *API) renewSliver(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	args, slice, p, options, err := a.begin(ctx, c, params, "slice_urn", "credentials", "expiration_time", "options")
	if err != nil {
		return nil, "", err
	}
	end, err := args.Time("expiration_time")
	if err != nil {
		return nil, "", err
	}
	var o aggregate.RenewOptions
	if o.AsLate, err = options.Bool("geni_extend_alap"); err != nil {
		return nil, "", err
	}
	if _, err := a.Service.Renew(ctx, p, aggregate.Target{Slice: slice}, end, o); err != nil {
		return nil, "", err
	}
	return true, "", nil
}

func (a *API) deleteSliver(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	_, slice, p, _, err := a.begin(ctx, c, params, "slice_urn", "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	if _, err := a.Service.Delete(ctx, p, aggregate.Target{Slice: slice}, false); err != nil {
		return nil, "", err
	}
	return true, "", nil
}

func (a *API) shutdown(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	_, slice, p, _, err := a.begin(ctx, c, params, "slice_urn", "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	if err := a.Service.Shutdown(ctx, p, slice); err != nil {
		return nil, "", err
	}
	return true, "", nil
}
