package v3

import (
	"context"

	"croft/am/wire"
)

// listSlices tells the slices that the caller has something in: those made by
// the REST APIs, and those all of whose nodes the caller has reserved. It is
// Croft's own addition to the API.
func (a *API) listSlices(ctx context.Context, c *wire.Call, params []any) (any, string, error) {
	args, err := wire.NewArgs(params, "credentials", "options")
	if err != nil {
		return nil, "", err
	}
	p, _, err := a.Session.Principal(ctx, c, args)
	if err != nil {
		return nil, "", err
	}
	held, err := a.Service.SlicesOfPrincipal(ctx, p)
	if err != nil {
		return nil, "", err
	}
	list := make([]any, len(held))
	for i, h := range held {
		list[i] = map[string]any{
			"croft_slice": h.URN.String(), "croft_created": wire.Time(h.Created), "croft_expires": wire.Time(h.Expires()), "croft_slivers": len(h.Slivers),
		}
	}
	return list, "", nil
}
