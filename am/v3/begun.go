package v3

import (
	"context"

	"croft/aggregate"
	"croft/am/wire"
	"croft/credentials"
	"croft/languages"
	"croft/urn"
)

// begun is a call on urns whose caller is known. Its target is found when all
// that the call says has been read: what is malformed is told first.
type begun struct {
	call       *wire.Call
	args       *wire.Args
	options    wire.Options
	principal  *credentials.Principal
	urns       []urn.URN
	target     aggregate.Target
	bestEffort bool
}

// begin reads what the calls on urns have in common.
func (a *API) begin(ctx context.Context, c *wire.Call, params []any, names ...string) (b begun, err error) {
	b.call = c
	if b.args, err = wire.NewArgs(params, names...); err != nil {
		return b, err
	}
	if b.urns, err = b.args.URNs("urns"); err != nil {
		return b, err
	}
	c.About(b.urns...)
	if b.principal, b.options, err = a.Session.Principal(ctx, c, b.args); err != nil {
		return b, err
	}
	b.bestEffort, err = b.options.Bool("geni_best_effort")
	return b, err
}

// find finds what a call is about.
func (a *API) find(ctx context.Context, b *begun, call credentials.Call) (err error) {
	if b.target, err = a.Service.Resolve(ctx, b.urns); err != nil {
		return err
	}
	b.call.About(append([]urn.URN{b.target.Slice}, b.target.Slivers...)...)
	if a.Strict && b.bestEffort {
		return a.Service.Present(ctx, b.principal, call, b.target)
	}
	return nil
}

// version reads the required option geni_rspec_version.
func (b *begun) version() (languages.Version, error) { return version(b.options) }

func version(o wire.Options) (languages.Version, error) {
	v, err := o.RSpecVersion()
	return languages.Version{Type: v.Type, Version: v.Version}, err
}
