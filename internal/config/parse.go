package config

import (
	"encoding"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"croft/urn"
)

// maxFile bounds what Parse reads.
const maxFile = 1 << 20

// Error is one thing wrong in a configuration file.
type Error struct {
	File  string
	Line  int    // from 1; 0 if the field is not in the file
	Field string // such as "limits.request_bytes"; "" for the file as such
	What  string
}

func (e *Error) Error() string {
	s := e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d", e.Line)
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	return s + ": " + e.What
}

// Parse is Load for a file already read; name is for messages, dir is where
// relative file names start. The error joins an *Error for everything that is
// wrong.
func Parse(name string, data []byte, dir string) (*Config, error) {
	if len(data) > maxFile {
		return nil, &Error{File: name, What: fmt.Sprintf("longer than %d bytes", maxFile)}
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, yamlError(name, err)
	}
	if len(file.Docs) > 1 {
		return nil, &Error{File: name, What: "more than one YAML document"}
	}
	var root ast.Node
	if len(file.Docs) == 1 {
		root = file.Docs[0].Body
	}
	// An alias can stand for much more than its own length; nothing here needs
	// one.
	if alias := findAlias(root); alias != nil {
		return nil, &Error{File: name, Line: line(alias), What: "YAML anchors and aliases are not read here"}
	}
	c := defaults()
	if root != nil {
		if err := yaml.NodeToValue(root, &c, yaml.Strict()); err != nil {
			return nil, yamlError(name, err)
		}
	}
	written := c
	c.complete(dir)
	v := validator{file: name, root: root}
	v.check(&written, &c)
	if len(v.errs) > 0 {
		return nil, errors.Join(v.errs...)
	}
	return &c, nil
}

// UnmarshalYAML reads a span.
func (d *Duration) UnmarshalYAML(n ast.Node) error { return scalar(n, d) }

// UnmarshalYAML reads a size.
func (b *Bytes) UnmarshalYAML(n ast.Node) error { return scalar(n, b) }

// scalar reads the text of a node into a value; its errors have a place.
func scalar(n ast.Node, into encoding.TextUnmarshaler) error {
	s, ok := n.(ast.ScalarNode)
	if !ok {
		return &yaml.SyntaxError{Message: "not a single value", Token: n.GetToken()}
	}
	if err := into.UnmarshalText([]byte(fmt.Sprint(s.GetValue()))); err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: n.GetToken()}
	}
	return nil
}

func yamlError(name string, err error) error {
	var at yaml.Error
	if errors.As(err, &at) {
		e := &Error{File: name, What: at.GetMessage()}
		if t := at.GetToken(); t != nil && t.Position != nil {
			e.Line = t.Position.Line
		}
		return e
	}
	return fmt.Errorf("%s: %w", name, err)
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

type aliasFinder struct{ found ast.Node }

func (f *aliasFinder) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		if f.found == nil {
			f.found = n
		}
	}
	return f
}

func findAlias(root ast.Node) ast.Node {
	if root == nil {
		return nil
	}
	var f aliasFinder
	ast.Walk(&f, root)
	return f.found
}

// validator collects what is wrong with the values of a file.
type validator struct {
	file string
	root ast.Node
	errs []error
}

// fail notes that a field is wrong.
func (v *validator) fail(field, format string, args ...any) {
	e := &Error{File: v.file, Field: field, What: fmt.Sprintf(format, args...)}
	if v.root != nil {
		if p, err := yaml.PathString("$." + field); err == nil {
			if n, err := p.FilterNode(v.root); err == nil && n != nil {
				e.Line = line(n)
			}
		}
	}
	v.errs = append(v.errs, e)
}

// check looks at a configuration as written and as completed.
func (v *validator) check(written, c *Config) {
	if host, port, err := net.SplitHostPort(c.Listen); err != nil {
		v.fail("listen", "%q is not HOST:PORT", c.Listen)
	} else {
		if _, err := net.LookupPort("tcp", port); err != nil {
			v.fail("listen", "%q is not a port", port)
		}
		if strings.ContainsAny(host, "/ ") {
			v.fail("listen", "%q is not a host", host)
		}
	}
	v.files(written)
	if c.Reconcile.Std() < time.Second {
		v.fail("reconcile", "%s is too often", c.Reconcile)
	}
	v.leases(c.Leases)
	v.limits(c.Limits)
	v.logins(written.Logins)
	v.gateway(written.Logins)
	v.frontend(written.Frontend)
	v.trust(written.Trust)
	v.rest(c.Rest)
	v.docker(written.Docker)
	v.between("links", c.Links)
	v.machines(written.Machines)
	v.mapping(c.Mapping)
	v.simulated(c.Simulated)
	if !slices.Contains([]string{"image", "install", "refuse"}, c.Radl.Playbooks) {
		v.fail("radl.playbooks", "%q is none of image, install, refuse", c.Radl.Playbooks)
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level) {
		v.fail("log.level", "%q is none of debug, info, warn, error", c.Log.Level)
	}
	if !slices.Contains([]string{"text", "json"}, c.Log.Format) {
		v.fail("log.format", "%q is none of text, json", c.Log.Format)
	}
}

func (v *validator) files(c *Config) {
	for _, f := range []struct{ field, value string }{
		{"pki.certificate", c.PKI.Certificate}, {"pki.key", c.PKI.Key}, {"trusted", c.Trusted},
		{"inventory", c.Inventory}, {"database", c.Database}, {"state", c.State},
	} {
		if f.value == "" {
			v.fail(f.field, "empty: a file name is needed (leave the field out for its default)")
		}
	}
}

func (v *validator) leases(l Leases) {
	for _, d := range []struct {
		field string
		value Duration
	}{{"leases.allocated", l.Allocated}, {"leases.provisioned", l.Provisioned}, {"leases.max", l.Max}} {
		if d.value.Std() < time.Second {
			v.fail(d.field, "%s is too short for a lease", d.value)
		} else if d.value > l.Max {
			v.fail(d.field, "%s is longer than leases.max, %s", d.value, l.Max)
		}
	}
}

func (v *validator) limits(l Limits) {
	if l.RequestBytes < 1<<10 {
		v.fail("limits.request_bytes", "%s is less than any call needs (1KiB)", l.RequestBytes)
	}
	for _, n := range []struct {
		field      string
		value, min int
	}{
		{"limits.nesting", l.Nesting, 8},
		{"limits.concurrent_calls", l.ConcurrentCalls, 1},
		{"limits.connections", l.Connections, 1},
	} {
		if n.value < n.min {
			v.fail(n.field, "%d is less than %d", n.value, n.min)
		}
	}
	for _, d := range []struct {
		field string
		value Duration
	}{
		{"limits.handshake", l.Handshake}, {"limits.header", l.Header}, {"limits.body", l.Body},
		{"limits.reply", l.Reply}, {"limits.idle", l.Idle}, {"limits.shutdown", l.Shutdown},
	} {
		if d.value <= 0 {
			v.fail(d.field, "%s is no time at all", d.value)
		}
	}
}

func (v *validator) logins(l Logins) {
	if l.Address != "" {
		if _, err := netip.ParseAddr(l.Address); err != nil {
			v.fail("logins.address", "%q is not an IP address", l.Address)
		}
	}
	if p := l.Ports; p.From < 1 || p.From > 65535 {
		v.fail("logins.ports.from", "%d is not a port", p.From)
	} else if p.To < p.From || p.To > 65535 {
		v.fail("logins.ports.to", "%d is not a port from %d on", p.To, p.From)
	}
}

// gatewayUser is what SSH clients take for an account without quoting it.
var gatewayUser = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

func (v *validator) gateway(l Logins) {
	if !slices.Contains([]Ways{Direct, Through, Both}, l.Ways) {
		v.fail("logins.ways", "%q is none of %s, %s, %s", l.Ways, Direct, Through, Both)
	}
	switch g := l.Gateway; {
	case g.Port < 1 || g.Port > 65535:
		v.fail("logins.gateway.port", "%d is not a port", g.Port)
	case l.Ways == Both && g.Port >= l.Ports.From && g.Port <= l.Ports.To:
		v.fail("logins.gateway.port", "%d is among the ports of nodes, logins.ports", g.Port)
	}
	if l.Gateway.User != "" && !gatewayUser.MatchString(l.Gateway.User) {
		v.fail("logins.gateway.user", "%q is not an account name", l.Gateway.User)
	}
}

func (v *validator) frontend(f Frontend) {
	switch f.Network {
	case "":
		return
	case "unix":
		if f.Address == "" {
			v.fail("frontend.address", "missing: the path of the socket")
		}
	case "tcp":
		host, _, err := net.SplitHostPort(f.Address)
		ip, ipErr := netip.ParseAddr(host)
		if err != nil {
			v.fail("frontend.address", "%q is not ADDRESS:PORT", f.Address)
		} else if ipErr != nil || !ip.IsLoopback() {
			// Whoever reaches this listener is believed to be the proxy.
			v.fail("frontend.address", "%q is not a loopback address (127.0.0.1 or [::1]): others could pretend to be the proxy", host)
		}
	default:
		v.fail("frontend.network", "%q is none of unix, tcp", f.Network)
	}
	if f.Header == "" || textproto.CanonicalMIMEHeaderKey(f.Header) == "" || strings.ContainsAny(f.Header, " :\r\n\t") {
		v.fail("frontend.header", "%q is not the name of an HTTP header", f.Header)
	}
}

func (v *validator) rest(r Rest) {
	if r.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(r.Listen)
	if err != nil {
		v.fail("rest.listen", "%q is not HOST:PORT", r.Listen)
		return
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		v.fail("rest.listen", "%q is not a port", port)
	}
	if ip, err := netip.ParseAddr(host); r.Plain && host != "localhost" && (err != nil || !ip.IsLoopback()) {
		// Passwords would cross the network for all to read.
		v.fail("rest.plain", "%q is not a loopback address (127.0.0.1 or [::1]), and passwords are sent without TLS on no other", host)
	}
	if r.Lifetime < 0 {
		v.fail("rest.lifetime", "%s is no time span: 0 has things end with their first lease", r.Lifetime)
	}
	if r.ZoeOrder != "" && r.ZoeOrder != "arrival" && r.ZoeOrder != "size" {
		v.fail("rest.zoe_order", "%q is none of arrival, size", r.ZoeOrder)
	}
	for i, h := range r.PackageHosts {
		if h == "" || strings.ContainsAny(h, "/@ *?#") {
			v.fail(fmt.Sprintf("rest.package_hosts[%d]", i), "%q is not a host, such as packages.example.org", h)
		}
	}
	for i, a := range r.Accounts {
		field := fmt.Sprintf("rest.accounts[%d]", i)
		if a.Name == "" {
			v.fail(field+".name", "missing: the name that clients give")
		}
		if a.Password == "" && a.Token == "" {
			v.fail(field, "neither a password nor a token (croft account hash and croft account token make their hashes)")
		}
		if a.Member.Type.Canonical() != urn.User {
			v.fail(field+".member", "%q is not the URN of a user, such as urn:publicid:IDN+example.org+user+alice", a.Member)
		}
	}
}

// leastRSABits is below any key that is worth something.
const leastRSABits = 1024

func (v *validator) trust(t Trust) {
	if t.MinRSABits < leastRSABits {
		v.fail("trust.min_rsa_bits", "%d is less than %d", t.MinRSABits, leastRSABits)
	}
	for file, authorities := range t.Limits {
		if file == "" || strings.ContainsAny(file, "/") {
			v.fail("trust.limits", "%q is not the name of a file in the folder of trust roots", file)
		}
		for _, a := range authorities {
			if a == "" || strings.ContainsAny(string(a), "+ ") {
				v.fail("trust.limits", "%s: %q is not an authority, such as example.org or example.org:project", file, a)
			}
		}
	}
}

func (v *validator) mapping(m Mapping) {
	if m.Layout != "pack" && m.Layout != "spread" {
		v.fail("mapping.layout", "%q is none of pack, spread", m.Layout)
	}
	if !(m.Effort >= 0.01 && m.Effort <= 1000) {
		v.fail("mapping.effort", "%g is not between 0.01 and 1000", m.Effort)
	}
	if m.Limit < 0 {
		v.fail("mapping.limit", "%s is no time at all", m.Limit)
	}
	c := m.Costs
	for _, cost := range []struct {
		name  string
		value float64
	}{{"host", c.Host}, {"switch", c.Switch}, {"trunk", c.Trunk}, {"scarce", c.Scarce}, {"hardware", c.Hardware}} {
		if !(cost.value >= 0 && cost.value <= 100) {
			v.fail("mapping.costs."+cost.name, "%g is not between 0 and 100", cost.value)
		}
	}
}

// longestSimulated bounds what an operation on a simulated node may take: after
// two minutes the aggregate would take it for failed.
const longestSimulated = Duration(90 * time.Second)

func (v *validator) simulated(s Simulated) {
	t, f := s.Times, s.Fail
	for _, op := range []struct {
		name string
		time Duration
		rate float64
	}{
		{"make", t.Make, f.Make}, {"start", t.Start, f.Start}, {"stop", t.Stop, f.Stop},
		{"users", t.Users, f.Users}, {"connect", t.Connect, f.Connect}, {"remove", t.Remove, f.Remove},
	} {
		if op.time < 0 || op.time > longestSimulated {
			v.fail("simulated.times."+op.name, "%s is not between no time and %s", op.time, longestSimulated)
		}
		if !(op.rate >= 0 && op.rate <= 1) { // not a number, too
			v.fail("simulated.fail."+op.name, "%g is not between 0, never, and 1, always", op.rate)
		}
	}
	if s.Fail.Remove == 1 {
		v.fail("simulated.fail.remove", "1: nothing could ever be given back")
	}
}
