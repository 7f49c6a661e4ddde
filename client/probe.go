package client

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"croft/internal/openssl"
	"croft/urn"
	"croft/xmlrpc"
)

// Verdict is what a probe says of an aggregate.
type Verdict string

// The verdicts.
const (
	Healthy     Verdict = "healthy"
	Unreachable Verdict = "unreachable" // no connection, or no answer in time
	Refused     Verdict = "refused"     // it answers, and says no
	Unhealthy   Verdict = "unhealthy"   // it fails, or answers what the AM API does not allow
)

// ProbeRequest says what to try.
type ProbeRequest struct {
	Credentials []Credential // for ListResources
	LifeCycle   *LifeCycle   // nil: only what changes nothing
}

// LifeCycle is what a probe brings up and takes down again.
type LifeCycle struct {
	Slice       urn.URN
	Credentials []Credential
	Request     string
	Users       []User
	// Login logs in to a node and runs something there.
	Login func(ctx context.Context, node *ManifestNode) error
}

// ProbeReport is what a probe has found.
type ProbeReport struct {
	URL        string      `json:"url"`
	Verdict    Verdict     `json:"verdict"`
	Began      time.Time   `json:"began"`
	Seconds    float64     `json:"seconds"`
	Steps      []ProbeStep `json:"steps"`
	API        int         `json:"geni_api,omitempty"`
	Components *Components `json:"components,omitempty"`
	Version    *Version    `json:"version,omitempty"`
}

// ProbeStep is one thing that a probe has tried.
type ProbeStep struct {
	Name    string  `json:"name"`           // "GetVersion", "login node0"
	Seconds float64 `json:"seconds"`        // how long it took
	Verdict Verdict `json:"verdict"`        // of this step
	Told    string  `json:"told,omitempty"` // what was learned
	Error   string  `json:"error,omitempty"`
	Code    *int    `json:"code,omitempty"` // geni_code of a refusal
}

// Components counts what an advertisement lists.
type Components struct {
	Nodes       Count            `json:"nodes"`
	Links       int              `json:"links"`
	SliverTypes map[string]Count `json:"sliver_types"` // the nodes that offer each
}

// Count is how many there are and how many of them are free.
type Count struct {
	Total int `json:"total"`
	Free  int `json:"free"`
}

func (c *Count) add(free bool) {
	c.Total++
	if free {
		c.Free++
	}
}

// Count counts the components of an advertisement.
func (ad *Advertisement) Count() *Components {
	c := &Components{Links: ad.Links, SliverTypes: map[string]Count{}}
	for _, n := range ad.Nodes {
		c.Nodes.add(n.Available)
		types := slices.Clone(n.SliverTypes)
		slices.Sort(types)
		for _, t := range slices.Compact(types) {
			of := c.SliverTypes[t]
			of.add(n.Available)
			c.SliverTypes[t] = of
		}
	}
	return c
}

// cleanUp is how long a probe tries to give back what it has got when it was
// itself called off.
const cleanUp = 2 * time.Minute

// Probe tries an aggregate as a federation's monitor does: GetVersion and
// ListResources, and if it is asked to a whole life cycle with logins. Report is
// told of every step when it is done; it may be nil.
func (c *Client) Probe(ctx context.Context, p ProbeRequest, report func(ProbeStep)) *ProbeReport {
	if report == nil {
		report = func(ProbeStep) {}
	}
	r := &ProbeReport{URL: c.url, Verdict: Healthy, Began: time.Now().UTC(), Steps: []ProbeStep{}}
	(&probe{client: c, report: r, tell: report}).run(ctx, p)
	r.Seconds = time.Since(r.Began).Seconds()
	return r
}

type probe struct {
	client *Client
	report *ProbeReport
	tell   func(ProbeStep)
}

// step does one thing and notes how it went. After one that failed, the verdict
// is the first failure's.
func (p *probe) step(name string, do func() (told string, err error)) bool {
	began := time.Now()
	told, err := do()
	s := ProbeStep{Name: name, Seconds: time.Since(began).Seconds(), Verdict: verdictOf(err), Told: told}
	if err != nil {
		s.Error = err.Error()
		var refused *APIError
		if errors.As(err, &refused) {
			s.Code = &refused.Code
		}
		if p.report.Verdict == Healthy {
			p.report.Verdict = s.Verdict
		}
	}
	p.report.Steps = append(p.report.Steps, s)
	p.tell(s)
	return err == nil
}

// errUnhealthy marks what an aggregate should not do.
var errUnhealthy = errors.New("unhealthy")

func verdictOf(err error) Verdict {
	var (
		refused *APIError
		reply   *ReplyError
		fault   *xmlrpc.Fault
		decode  *xmlrpc.DecodeError
		limit   *xmlrpc.LimitError
		http    *xmlrpc.HTTPError
		failed  *FailedError
		tls     *openssl.Error
	)
	switch {
	case err == nil:
		return Healthy
	case errors.As(err, &refused):
		switch refused.Code {
		case 2, 5, 8, 9, 10, 102, -32001: // something within it has gone wrong
			return Unhealthy
		}
		return Refused
	case errors.Is(err, errUnhealthy), errors.As(err, &reply), errors.As(err, &fault), errors.As(err, &decode),
		errors.As(err, &limit), errors.As(err, &http), errors.As(err, &failed):
		return Unhealthy
	case errors.As(err, &tls) && refusing.MatchString(tls.Text):
		return Refused
	}
	return Unreachable
}

// refusing are the TLS alerts of aggregates that do not want the caller's
// certificate (RFC 8446, section 6.2).
var refusing = regexp.MustCompile(`alert (unknown ca|access denied|(bad|unsupported|no)? ?certificate)`)

func unhealthy(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errUnhealthy, fmt.Errorf(format, args...))
}

func (p *probe) run(ctx context.Context, r ProbeRequest) {
	var v *Version
	if !p.step("GetVersion", func() (told string, err error) {
		if v, err = p.client.Version(ctx); err != nil {
			return "", err
		}
		p.report.Version, p.report.API = v, v.API
		if len(v.AdFormats) == 0 || len(v.APIVersions) == 0 {
			return "", unhealthy("GetVersion lists no RSpec versions, or no API versions")
		}
		return fmt.Sprintf("AM API %d", v.API), nil
	}) {
		return
	}
	if !p.step("ListResources", func() (string, error) { return p.list(ctx, v, r.Credentials) }) {
		return
	}
	if r.LifeCycle != nil {
		p.live(ctx, v, r.LifeCycle)
	}
}

func (p *probe) list(ctx context.Context, v *Version, creds []Credential) (string, error) {
	format := v.AdFormats[0].RSpecVersion
	for _, f := range v.AdFormats {
		if strings.EqualFold(f.Type, GENI3.Type) && f.Version == GENI3.Version {
			format = f.RSpecVersion
		}
	}
	document, err := p.client.ListResources(ctx, creds, ListOptions{RSpec: format, API: v.API})
	if err != nil {
		return "", err
	}
	ad, err := ReadAdvertisement(document)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnhealthy, err)
	}
	c := ad.Count()
	p.report.Components = c
	return fmt.Sprintf("%d of %d nodes free, %d links", c.Nodes.Free, c.Nodes.Total, c.Links), nil
}

// live is a life cycle. What was allocated is given back whatever happens.
func (p *probe) live(ctx context.Context, v *Version, l *LifeCycle) {
	c := p.client
	var mine []urn.URN
	targets := func() []urn.URN {
		if v.SingleAllocation {
			return []urn.URN{l.Slice}
		}
		return mine
	}
	if v.API != 3 {
		p.step("Allocate", func() (string, error) {
			return "", &APIError{Method: "Allocate", Code: 13, Output: fmt.Sprintf("this is version %d of the AM API: a life cycle needs 3 (%s)", v.API, v.APIVersions["3"])}
		})
		return
	}
	if !p.step("Allocate", func() (string, error) {
		d, err := c.Allocate(ctx, l.Slice, l.Credentials, l.Request, time.Time{})
		if err != nil {
			return "", err
		}
		for _, s := range d.Slivers {
			mine = append(mine, s.URN)
		}
		if len(mine) == 0 {
			return "", unhealthy("Allocate gives no slivers")
		}
		return fmt.Sprintf("%d slivers", len(mine)), nil
	}) {
		return
	}
	p.use(ctx, l, targets())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	if !p.step("Delete", func() (string, error) {
		_, err := retry(ctx, func() ([]Sliver, error) { return c.Delete(ctx, targets(), l.Credentials, false) })
		return "", err
	}) {
		return
	}
	p.step("gone", func() (string, error) {
		d, err := c.Status(ctx, targets(), l.Credentials)
		var refused *APIError
		if errors.As(err, &refused) && (refused.Code == 12 || refused.Code == 15) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		for _, s := range d.Slivers {
			if slices.ContainsFunc(mine, s.URN.Equal) && s.Allocation != "geni_unallocated" {
				return "", unhealthy("%s is %s after Delete", s.URN, s.Allocation)
			}
		}
		return "", nil
	})
}

// use provisions and starts slivers and logs in to their nodes.
func (p *probe) use(ctx context.Context, l *LifeCycle, targets []urn.URN) {
	c := p.client
	quiet := func(Progress) {}
	var list []Sliver
	if !p.step("Provision", func() (string, error) {
		d, err := retry(ctx, func() (*Described, error) {
			return c.Provision(ctx, targets, l.Credentials, ProvisionOptions{Users: l.Users})
		})
		if err == nil {
			list = d.Slivers
		}
		return "", err
	}) {
		return
	}
	up := UpRequest{Slice: l.Slice, Credentials: l.Credentials}
	if !p.step("made", func() (_ string, err error) {
		list, err = c.await(ctx, up, list, Making, settled, quiet)
		return "", late(err)
	}) {
		return
	}
	if slices.ContainsFunc(list, func(s Sliver) bool { return s.Operational == "geni_notready" }) {
		if !p.step("PerformOperationalAction", func() (string, error) {
			_, err := retry(ctx, func() ([]Sliver, error) {
				return c.Perform(ctx, targets, l.Credentials, "geni_start", ActionOptions{BestEffort: true})
			})
			return "geni_start", err
		}) {
			return
		}
	}
	if !p.step("ready", func() (_ string, err error) {
		list, err = c.await(ctx, up, list, Starting, ready, quiet)
		return "", late(err)
	}) {
		return
	}
	var m *Manifest
	if !p.step("Describe", func() (string, error) {
		d, err := c.Describe(ctx, targets, l.Credentials, GENI3)
		if err != nil {
			return "", err
		}
		if m, err = ReadManifest(d.RSpec); err != nil {
			return "", fmt.Errorf("%w: %w", errUnhealthy, err)
		}
		return fmt.Sprintf("%d nodes", len(m.Nodes)), nil
	}) {
		return
	}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if !slices.ContainsFunc(list, func(s Sliver) bool { return s.URN.String() == n.Sliver }) {
			continue // another aggregate's, or one that was there before
		}
		p.step("login "+n.ClientID, func() (string, error) {
			if err := l.Login(ctx, n); err != nil {
				return "", fmt.Errorf("%w: %w", errUnhealthy, err)
			}
			return "", nil
		})
	}
}

// late says of slivers that did not get ready in time that the aggregate is to
// blame.
func late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errUnhealthy, err)
	}
	return err
}
