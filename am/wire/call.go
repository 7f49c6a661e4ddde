package wire

import (
	"context"

	"croft/credentials"
	"croft/urn"
)

// Method answers one call: with a value and, beside it, something for people
// to read; or with an error that CodeOf knows.
type Method func(ctx context.Context, c *Call, params []any) (value any, output string, err error)

// Call is what is known of a call besides its parameters. The audit log is
// written from it.
type Call struct {
	Caller   *credentials.Caller
	BaseURL  string            // scheme and host as the client reached this server
	Versions map[string]string // versions of the AM API here, and their paths

	Principal *credentials.Principal // nil until Session.Principal has made it
	Targets   []urn.URN              // slice first, if it is known
}

// About notes what the call is about.
func (c *Call) About(targets ...urn.URN) { c.Targets = targets }

// URLs are the addresses of all versions here, as GetVersion lists them.
func (c *Call) URLs() map[string]any {
	urls := make(map[string]any, len(c.Versions))
	for version, path := range c.Versions {
		urls[version] = c.BaseURL + path
	}
	return urls
}

// Session makes principals of callers and what they present.
type Session struct {
	Verifier *credentials.Verifier
}

// CredentialTypes lists what GetVersion says is understood.
func (s Session) CredentialTypes() []any {
	return []any{
		map[string]any{"geni_type": "geni_sfa", "geni_version": "2"},
		map[string]any{"geni_type": "geni_sfa", "geni_version": "3"},
		map[string]any{"geni_type": "geni_abac", "geni_version": "1"},
	}
}

// Principal reads the arguments credentials and options of a call, and the
// option geni_speaking_for, and verifies who calls with which rights.
func (s Session) Principal(ctx context.Context, c *Call, args *Args) (*credentials.Principal, Options, error) {
	options, err := args.Options()
	if err != nil {
		return nil, nil, err
	}
	var presented credentials.Presented
	if presented.Credentials, err = args.Credentials("credentials"); err != nil {
		return nil, nil, err
	}
	if presented.SpeakingFor, err = options.URN("geni_speaking_for"); err != nil {
		return nil, nil, err
	}
	if c.Principal, err = s.Verifier.Verify(ctx, c.Caller, presented); err != nil {
		return nil, nil, err
	}
	return c.Principal, options, nil
}
