// Package client calls aggregate managers: version 3 of the AM API, typed.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"croft/urn"
)

// Credential is one credential as the AM API carries it.
type Credential struct {
	Type    string // geni_type: "geni_sfa", "geni_abac"
	Version string // geni_version: "2", "3"
	Value   string // the document
}

// SFA returns a document as an SFA credential.
func SFA(document string) Credential {
	return Credential{Type: "geni_sfa", Version: "3", Value: document}
}

// RSpecVersion names a document format in a call.
type RSpecVersion struct {
	Type    string `json:"type"`
	Version string `json:"version"`
}

// GENI3 is the RSpec that all of today's aggregates speak.
var GENI3 = RSpecVersion{Type: "GENI", Version: "3"}

// Format is a document format that an aggregate offers.
type Format struct {
	RSpecVersion
	Schema     string   `json:"schema,omitempty"`
	Namespace  string   `json:"namespace,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
}

// Version is what an aggregate says of itself.
type Version struct {
	API              int               `json:"geni_api"`
	APIVersions      map[string]string `json:"geni_api_versions"`
	RequestFormats   []Format          `json:"geni_request_rspec_versions"`
	AdFormats        []Format          `json:"geni_ad_rspec_versions"`
	CredentialTypes  []CredentialType  `json:"geni_credential_types"`
	SingleAllocation bool              `json:"geni_single_allocation"`
	Allocate         string            `json:"geni_allocate,omitempty"`
	Gateway          SSHGateway        `json:"croft_ssh_gateway,omitzero"`
}

// CredentialType is a kind of credential that an aggregate reads.
type CredentialType struct {
	Type    string `json:"geni_type"`
	Version string `json:"geni_version"`
}

// Sliver is the state of one sliver.
type Sliver struct {
	URN         urn.URN   `json:"geni_sliver_urn"`
	Allocation  string    `json:"geni_allocation_status"`
	Operational string    `json:"geni_operational_status,omitempty"`
	Expires     time.Time `json:"geni_expires,omitzero"`
	Resource    string    `json:"geni_resource_status,omitempty"`
	Error       string    `json:"geni_error,omitempty"`
	ClientID    string    `json:"geni_client_id,omitempty"` // of some aggregates
	Startup     []Step    `json:"croft_startup,omitempty"`  // of a Croft
	Console     string    `json:"croft_console,omitempty"`  // of a Croft that was asked for it
	// HostKey is the key that the node shows to SSH clients, where a Croft
	// tells it: type and base64.
	HostKey string `json:"croft_host_key,omitempty"`
}

// Described is a manifest and the states of its slivers.
type Described struct {
	Slice   urn.URN  `json:"geni_urn,omitzero"`
	Slivers []Sliver `json:"geni_slivers"`
	RSpec   string   `json:"geni_rspec,omitempty"`
	// Outputs are those of the slice's documents, of a Croft that was asked
	// for them.
	Outputs map[string]any `json:"croft_outputs,omitempty"`
	// Output is what the aggregate says about a request that it took: a Croft
	// tells what has no effect, or another one than elsewhere.
	Output string `json:"output,omitempty"`
}

// User is somebody whose keys open the nodes.
type User struct {
	URN  urn.URN
	Keys []string // lines as in authorized_keys
}

// Options of calls. Zero values are not sent.
type (
	// ListOptions direct ListResources.
	ListOptions struct {
		RSpec      RSpecVersion
		Available  bool // only what is free
		Compressed bool
		API        int // version of the AM API at the URL; 0 is 3. In 2, credentials are strings
	}
	// ProvisionOptions direct Provision.
	ProvisionOptions struct {
		RSpec      RSpecVersion
		End        time.Time
		Users      []User
		BestEffort bool
	}
	// ActionOptions direct PerformOperationalAction.
	ActionOptions struct {
		Users      []User // of geni_update_users
		BestEffort bool
	}
)

// caller is the XML-RPC connection.
type caller interface {
	Call(ctx context.Context, method string, params ...any) (any, error)
}

// Client calls one aggregate. It may be used by many goroutines at once.
type Client struct {
	url     string
	rpc     caller
	timeout time.Duration
}

// URL returns the address that the client calls.
func (c *Client) URL() string { return c.url }

// call makes a call and returns the value of its reply. A reply whose
// geni_code is not 0 is an *APIError.
func (c *Client) call(ctx context.Context, r *reader, params ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	got, err := c.rpc.Call(ctx, r.method, params...)
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			return nil, fmt.Errorf("%s: call %s: no answer within %s", c.url, r.method, c.timeout)
		}
		return nil, fmt.Errorf("%s: %w", c.url, err)
	}
	reply := r.object(got, "reply")
	code := r.object(reply["code"], "code")
	if r.err != nil {
		return nil, r.err
	}
	n := r.number(code, "geni_code", "code")
	if r.err != nil {
		return nil, r.err
	}
	if n != 0 {
		e := &APIError{Method: r.method, Code: n, AMType: r.text(code, "am_type", "code"), Output: r.text(reply, "output", "reply")}
		if code["am_code"] != nil {
			e.AMCode = r.number(code, "am_code", "code")
		}
		return nil, e
	}
	// Some aggregates write other things than text there, of no use.
	r.output, _ = reply["output"].(string)
	return reply["value"], nil
}

// Version asks an aggregate what it is (GetVersion).
func (c *Client) Version(ctx context.Context) (*Version, error) {
	r := &reader{method: "GetVersion"}
	value, err := c.call(ctx, r, map[string]any{})
	if err != nil {
		return nil, err
	}
	m := r.object(value, "value")
	v := &Version{APIVersions: map[string]string{}}
	if r.err != nil {
		return nil, r.err
	}
	v.API = r.number(m, "geni_api", "value")
	versions := r.object(m["geni_api_versions"], "value.geni_api_versions")
	for name := range versions {
		v.APIVersions[name] = r.text(versions, name, "value.geni_api_versions")
	}
	v.RequestFormats = r.formats(m, "geni_request_rspec_versions")
	v.AdFormats = r.formats(m, "geni_ad_rspec_versions")
	if types, ok := m["geni_credential_types"]; ok {
		for i, item := range r.list(types, "value.geni_credential_types") {
			at := fmt.Sprintf("value.geni_credential_types[%d]", i)
			t := r.object(item, at)
			v.CredentialTypes = append(v.CredentialTypes, CredentialType{r.text(t, "geni_type", at), r.text(t, "geni_version", at)})
		}
	}
	if m["geni_single_allocation"] != nil {
		v.SingleAllocation = r.number(m, "geni_single_allocation", "value") != 0
	}
	v.Allocate = r.text(m, "geni_allocate", "value")
	if m["croft_ssh_gateway"] != nil {
		const at = "value.croft_ssh_gateway"
		g := r.object(m["croft_ssh_gateway"], at)
		v.Gateway = SSHGateway{Host: r.text(g, "hostname", at), Port: r.number(g, "port", at), HostKey: r.text(g, "host_key", at)}
	}
	return v, r.err
}

func (r *reader) formats(m map[string]any, name string) []Format {
	var out []Format
	for i, item := range r.list(m[name], "value."+name) {
		at := fmt.Sprintf("value.%s[%d]", name, i)
		f := r.object(item, at)
		format := Format{
			RSpecVersion: RSpecVersion{Type: r.text(f, "type", at), Version: r.text(f, "version", at)},
			Schema:       r.text(f, "schema", at),
			Namespace:    r.text(f, "namespace", at),
		}
		if f["extensions"] != nil {
			for _, e := range r.list(f["extensions"], at+".extensions") {
				format.Extensions = append(format.Extensions, fmt.Sprint(e))
			}
		}
		out = append(out, format)
	}
	return out
}

// ListResources asks for the advertisement.
func (c *Client) ListResources(ctx context.Context, creds []Credential, o ListOptions) (string, error) {
	r := &reader{method: "ListResources"}
	options := rspecOption(o.RSpec)
	options["geni_available"] = o.Available
	options["geni_compressed"] = o.Compressed
	presented := wire(creds)
	if o.API == 2 {
		for i, c := range creds {
			presented[i] = c.Value
		}
	}
	value, err := c.call(ctx, r, presented, options)
	if err != nil {
		return "", err
	}
	ad := r.rspec(value, "value")
	return ad, r.err
}

// Allocate reserves what a request asks for; end is when it should end, zero
// to leave that to the aggregate.
func (c *Client) Allocate(ctx context.Context, slice urn.URN, creds []Credential, request string, end time.Time) (*Described, error) {
	return c.AllocateWith(ctx, slice, creds, request, end, nil)
}

// AllocateWith is Allocate with values for the parameters of the request
// (option croft_inputs).
func (c *Client) AllocateWith(ctx context.Context, slice urn.URN, creds []Credential, request string, end time.Time, inputs map[string]any) (*Described, error) {
	r := &reader{method: "Allocate"}
	options := map[string]any{}
	endOption(options, end)
	if len(inputs) > 0 {
		options["croft_inputs"] = inputs
	}
	value, err := c.call(ctx, r, slice.String(), wire(creds), request, options)
	if err != nil {
		return nil, err
	}
	d, err := r.described(value)
	if d != nil {
		d.Output = r.output
		if d.Slice.IsZero() {
			d.Slice = slice
		}
	}
	return d, err
}

// Provision makes real what is allocated.
func (c *Client) Provision(ctx context.Context, targets []urn.URN, creds []Credential, o ProvisionOptions) (*Described, error) {
	r := &reader{method: "Provision"}
	options := rspecOption(o.RSpec)
	endOption(options, o.End)
	usersOption(options, o.Users)
	options["geni_best_effort"] = o.BestEffort
	value, err := c.call(ctx, r, names(targets), wire(creds), options)
	if err != nil {
		return nil, err
	}
	return r.described(value)
}

// Status tells the states of slivers.
func (c *Client) Status(ctx context.Context, targets []urn.URN, creds []Credential) (*Described, error) {
	return c.status(ctx, targets, creds, map[string]any{})
}

func (c *Client) status(ctx context.Context, targets []urn.URN, creds []Credential, options map[string]any) (*Described, error) {
	r := &reader{method: "Status"}
	value, err := c.call(ctx, r, names(targets), wire(creds), options)
	if err != nil {
		return nil, err
	}
	return r.described(value)
}

// Describe gives the manifest of slivers.
func (c *Client) Describe(ctx context.Context, targets []urn.URN, creds []Credential, version RSpecVersion) (*Described, error) {
	r := &reader{method: "Describe"}
	value, err := c.call(ctx, r, names(targets), wire(creds), rspecOption(version))
	if err != nil {
		return nil, err
	}
	return r.described(value)
}

// Slice is a slice that the caller has something in.
type Slice struct {
	URN     urn.URN   `json:"croft_slice"`
	Created time.Time `json:"croft_created,omitzero"`
	Expires time.Time `json:"croft_expires,omitzero"` // the first of its slivers
	Slivers int       `json:"croft_slivers"`
}

// Slices asks a Croft which slices the caller has something in (ListSlices).
func (c *Client) Slices(ctx context.Context, creds []Credential) ([]Slice, error) {
	r := &reader{method: "ListSlices"}
	value, err := c.call(ctx, r, wire(creds), map[string]any{})
	if err != nil {
		return nil, err
	}
	out := []Slice{}
	for i, v := range r.list(value, "value") {
		at := fmt.Sprintf("value[%d]", i)
		m := r.object(v, at)
		if r.err != nil {
			break
		}
		out = append(out, Slice{URN: r.urn(m, "croft_slice", at), Created: r.time(m, "croft_created", at), Expires: r.time(m, "croft_expires", at),
			Slivers: r.number(m, "croft_slivers", at)})
	}
	return out, r.err
}

// Outputs asks a Croft for the outputs of a slice's documents, such as those
// of TOSCA templates (option croft_outputs of Describe).
func (c *Client) Outputs(ctx context.Context, slice urn.URN, creds []Credential) (*Described, error) {
	r := &reader{method: "Describe"}
	options := rspecOption(GENI3)
	options["croft_outputs"] = true
	value, err := c.call(ctx, r, names([]urn.URN{slice}), wire(creds), options)
	if err != nil {
		return nil, err
	}
	d, err := r.described(value)
	if err != nil {
		return nil, err
	}
	fields, _ := value.(map[string]any)
	text, told := fields["croft_outputs"].(string)
	if !told {
		return nil, errors.New("Describe: the aggregate tells no outputs")
	}
	if err := json.Unmarshal([]byte(text), &d.Outputs); err != nil {
		return nil, fmt.Errorf("Describe: croft_outputs: %w", err)
	}
	return d, nil
}

// Perform does an operational action, such as "geni_start".
func (c *Client) Perform(ctx context.Context, targets []urn.URN, creds []Credential, action string, o ActionOptions) ([]Sliver, error) {
	r := &reader{method: "PerformOperationalAction"}
	options := map[string]any{"geni_best_effort": o.BestEffort}
	usersOption(options, o.Users)
	return c.slivers(ctx, r, names(targets), wire(creds), action, options)
}

// Renew asks for another end.
func (c *Client) Renew(ctx context.Context, targets []urn.URN, creds []Credential, end time.Time, bestEffort bool) ([]Sliver, error) {
	r := &reader{method: "Renew"}
	return c.slivers(ctx, r, names(targets), wire(creds), formatTime(end), map[string]any{"geni_best_effort": bestEffort})
}

// Delete gives slivers back.
func (c *Client) Delete(ctx context.Context, targets []urn.URN, creds []Credential, bestEffort bool) ([]Sliver, error) {
	r := &reader{method: "Delete"}
	return c.slivers(ctx, r, names(targets), wire(creds), map[string]any{"geni_best_effort": bestEffort})
}

// Shutdown stops a slice: the emergency stop of operators.
func (c *Client) Shutdown(ctx context.Context, slice urn.URN, creds []Credential) error {
	r := &reader{method: "Shutdown"}
	_, err := c.call(ctx, r, slice.String(), wire(creds), map[string]any{})
	return err
}

func (c *Client) slivers(ctx context.Context, r *reader, params ...any) ([]Sliver, error) {
	value, err := c.call(ctx, r, params...)
	if err != nil {
		return nil, err
	}
	out := r.slivers(value, "value")
	return out, r.err
}

func (r *reader) described(value any) (*Described, error) {
	m := r.object(value, "value")
	if r.err != nil {
		return nil, r.err
	}
	d := &Described{Slivers: r.slivers(m["geni_slivers"], "value.geni_slivers")}
	if m["geni_rspec"] != nil {
		d.RSpec = r.rspec(m["geni_rspec"], "value.geni_rspec")
	}
	if m["geni_urn"] != nil {
		d.Slice = r.urn(m, "geni_urn", "value")
	}
	if r.err != nil {
		return nil, r.err
	}
	return d, nil
}

func wire(creds []Credential) []any {
	out := make([]any, len(creds))
	for i, c := range creds {
		out[i] = map[string]any{"geni_type": c.Type, "geni_version": c.Version, "geni_value": c.Value}
	}
	return out
}

func names(targets []urn.URN) []any {
	out := make([]any, len(targets))
	for i, t := range targets {
		out[i] = t.String()
	}
	return out
}

func rspecOption(v RSpecVersion) map[string]any {
	if v == (RSpecVersion{}) {
		v = GENI3
	}
	return map[string]any{"geni_rspec_version": map[string]any{"type": v.Type, "version": v.Version}}
}

func endOption(options map[string]any, end time.Time) {
	if !end.IsZero() {
		options["geni_end_time"] = formatTime(end)
	}
}

func usersOption(options map[string]any, users []User) {
	if len(users) == 0 {
		return
	}
	list := make([]any, len(users))
	for i, u := range users {
		keys := make([]any, len(u.Keys))
		for j, k := range u.Keys {
			keys[j] = k
		}
		list[i] = map[string]any{"urn": u.URN.String(), "keys": keys}
	}
	options["geni_users"] = list
}

// formatTime writes a date as the AM API wants it: RFC 3339 without fractions.
func formatTime(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }
