package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What New writes must be what the defaults are, or the file would lie about
// them.
func TestNewSaysTheDefaults(t *testing.T) {
	data, err := New("127.0.0.1:12369")
	if err != nil {
		t.Fatal(err)
	}
	full, err := Parse("croft.yaml", data, "/srv/croft")
	if err != nil {
		t.Fatal(err)
	}
	short, err := Parse("croft.yaml", []byte("logins: {address: 127.0.0.1}\n"), "/srv/croft")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(full, short) {
		t.Errorf("the generated file gives\n%+v\nthe defaults are\n%+v", full, short)
	}
}

func TestNewExplainsEveryField(t *testing.T) {
	data, err := New("127.0.0.1:12369")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := f.Tag.Get("yaml")
			if name == "-" {
				name = strings.ToLower(f.Name)
			}
			if name == "" {
				t.Errorf("%s.%s has no name in YAML", typ, f.Name)
			}
			if !strings.Contains(string(data), name+":") {
				t.Errorf("the generated file does not mention %s", name)
			}
			if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == typ.PkgPath() {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
}

func TestCompletion(t *testing.T) {
	tests := []struct {
		name, text string
		get        func(*Config) any
		want       string
	}{
		{"hostname of listen", "listen: am.example.org:443", func(c *Config) any { return c.Hostname }, "am.example.org"},
		{"IPv6 URL", `listen: "[::1]:443"`, func(c *Config) any { return c.URL() }, "https://[::1]:443/am/3.0"},
		{"hostname given", "listen: \":443\"\nhostname: am.example.org", func(c *Config) any { return c.URL() }, "https://am.example.org:443/am/3.0"},
		{"logins hostname", "hostname: a.example.org", func(c *Config) any { return c.Logins.Hostname }, "a.example.org"},
		{"relative file", "inventory: lab.yaml", func(c *Config) any { return c.Inventory }, "/srv/croft/lab.yaml"},
		{"absolute file", "inventory: /etc/lab.yaml", func(c *Config) any { return c.Inventory }, "/etc/lab.yaml"},
		{"trust limits", "trust: {limits: {emulab.pem: [emulab.net, 'a:b']}}", func(c *Config) any { return c.Trust.Limits["emulab.pem"][1] }, "a:b"},
		{"relative policy", "trust: {policy: p.rt0}", func(c *Config) any { return c.Trust.Policy }, "/srv/croft/p.rt0"},
		{"relative socket", "frontend: {network: unix, address: f.sock, header: X-SSL}", func(c *Config) any { return c.Frontend.Address }, "/srv/croft/f.sock"},
		{"days", "leases: {max: 60d}", func(c *Config) any { return c.Leases.Max.Std() }, "1440h0m0s"},
		{"one limit leaves the others", "limits: {request_bytes: 1MiB}", func(c *Config) any { return c.Limits.Nesting }, "64"},
		{"size", "limits: {request_bytes: 1MiB}", func(c *Config) any { return int64(c.Limits.RequestBytes) }, "1048576"},
		{"plain size", "limits: {request_bytes: 123456}", func(c *Config) any { return int64(c.Limits.RequestBytes) }, "123456"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := Parse("croft.yaml", []byte(test.text), "/srv/croft")
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(test.get(c)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestErrorsNameFieldAndLine(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown field", "# comment\nlimit: {}", `croft.yaml:2: unknown field "limit"`},
		{"unknown nested field", "# comment\nlimits:\n  bytes: 1", `croft.yaml:3: unknown field "bytes"`},
		{"wrong type", "# comment\nlimits:\n  nesting: deep", "croft.yaml:3: "},
		{"not YAML", "log: [", "croft.yaml:1: "},
		{"two documents", "log: {}\n---\nlog: {}", "more than one"},
		{"alias", "hostname: &a x\nlisten: *a", "croft.yaml:1: YAML anchors"},
		{"listen without port", "# comment\nlisten: localhost", `croft.yaml:2: listen: "localhost" is not HOST:PORT`},
		{"small keys", "trust: {min_rsa_bits: 512}", `croft.yaml:1: trust.min_rsa_bits: 512 is less than 1024`},
		{"limit of a path", "trust: {limits: {a/b.pem: [x]}}", `"a/b.pem" is not the name of a file`},
		{"listen on a bad port", "# comment\nlisten: localhost:nothing", `croft.yaml:2: listen: "nothing" is not a port`},
		{"size", "# comment\nlimits:\n  request_bytes: 10 elephants", `croft.yaml:3: "10 elephants" is not a size`},
		{"small size", "# comment\nlimits:\n  request_bytes: 10", `croft.yaml:3: limits.request_bytes: 10 is less`},
		{"span", "# comment\nleases:\n\n  allocated: soon", `croft.yaml:4: "soon" is not a time span`},
		{"lease over max", "# comment\nleases: {provisioned: 3h, max: 2h}", `croft.yaml:2: leases.provisioned: 3h is longer than leases.max, 2h`},
		{"no time", "# comment\nlimits: {idle: 0s}", `croft.yaml:2: limits.idle: 0s is no time`},
		{"ports", "# comment\nlogins:\n  ports: {from: 30, to: 20}", `croft.yaml:3: logins.ports.to: 20 is not a port from 30 on`},
		{"login address", "# comment\nlogins: {address: here}", `croft.yaml:2: logins.address: "here"`},
		{"frontend on the net", "# comment\nfrontend:\n  network: tcp\n  address: 192.0.2.1:80", "croft.yaml:4: frontend.address: "},
		{"frontend network", "# comment\nfrontend: {network: udp}", `croft.yaml:2: frontend.network: "udp"`},
		{"frontend header", "# comment\nfrontend: {network: unix, address: s, header: 'a b'}", `croft.yaml:2: frontend.header: `},
		{"REST address", "# comment\nrest: {listen: 8800}", `croft.yaml:2: rest.listen: "8800" is not HOST:PORT`},
		{"REST without TLS on the net", "# comment\nrest:\n  listen: 0.0.0.0:8800\n  plain: true", "croft.yaml:4: rest.plain: "},
		{"REST lifetime", "# comment\nrest:\n  listen: 127.0.0.1:8800\n  lifetime: -1h", "croft.yaml:4: rest.lifetime: "},
		{"REST account without a secret", "rest:\n  listen: 127.0.0.1:8800\n  accounts: [{name: a, member: 'urn:publicid:IDN+e.org+user+a'}]", "rest.accounts[0]: neither a password nor a token"},
		{"REST account of a slice", "rest:\n  listen: 127.0.0.1:8800\n  accounts: [{name: a, token: x, member: 'urn:publicid:IDN+e.org+slice+a'}]", "rest.accounts[0].member: "},
		{"playbooks", "# comment\nradl: {playbooks: maybe}", `croft.yaml:2: radl.playbooks: "maybe"`},
		{"simulated time", "# comment\nsimulated: {times: {make: 1h}}", "croft.yaml:2: simulated.times.make: 1h is not between"},
		{"simulated negative time", "simulated: {times: {stop: -1s}}", "croft.yaml:1: simulated.times.stop: "},
		{"simulated rate", "# comment\nsimulated:\n  fail: {start: 1.5}", "croft.yaml:3: simulated.fail.start: 1.5 is not between"},
		{"Docker host without a name", "docker:\n  hosts:\n    - address: unix:///run/docker.sock", "docker.hosts[0].name: "},
		{"Docker hosts of one name", "docker: {hosts: [{name: a, address: 'unix:///a', components: [x]}, {name: a, address: 'unix:///b'}]}", "docker.hosts[1].name: "},
		{"two Docker hosts for the rest", "docker: {hosts: [{name: a, address: 'unix:///a'}, {name: b, address: 'unix:///b'}]}", "docker.hosts[1].components: missing"},
		{"Docker by TCP without TLS", "docker:\n  hosts:\n    - name: a\n      address: tcp://a:2375", "docker.hosts[0].tls.authority: missing"},
		{"Docker by SSH without a key", "docker: {hosts: [{name: a, address: 'ssh://u@a', ssh: {known_hosts: x}}]}", "docker.hosts[0].ssh.key: missing"},
		{"Docker at an odd address", "docker: {hosts: [{name: a, address: 'http://a'}]}", "docker.hosts[0].address: "},
		{"Docker and a field that there is none of", "docker: {host: unix:///a}", "croft.yaml:1: "},
		{"underlay without an address", "# comment\nlinks:\n  underlay: here", `croft.yaml:3: links.underlay: "here" is no IP address of a machine`},
		{"underlay of all addresses", "# comment\nlinks: {underlay: '::'}", `croft.yaml:2: links.underlay: "::"`},
		{"underlay of a group", "links: {underlay: 239.1.1.1}", `croft.yaml:1: links.underlay: "239.1.1.1"`},
		{"underlay with a zone", "links: {underlay: 'fe80::1%eth0'}", `croft.yaml:1: links.underlay: "fe80::1%eth0"`},
		{"underlay with a length", "links: {underlay: 192.0.2.1/24}", `croft.yaml:1: links.underlay: "192.0.2.1/24"`},
		{"uplink without a name", "# comment\nlinks:\n  uplinks:\n    - eth1\n    - ''", `croft.yaml:5: links.uplinks[1]: "" is no name of an interface`},
		{"uplink of a long name", "links: {uplinks: [sixteen-letters-]}", `croft.yaml:1: links.uplinks[0]: "sixteen-letters-"`},
		{"uplinks that are no list", "# comment\nlinks:\n  uplinks: eth1", "croft.yaml:3: "},
		{"links and a field that there is none of", "# comment\nlinks: {uplink: [eth1]}", `croft.yaml:2: unknown field "uplink"`},
		{"underlay of a Docker host", "docker:\n  hosts:\n    - name: a\n      address: ssh://u@a\n      underlay: a\n      ssh: {key: k, known_hosts: h}", `croft.yaml:5: docker.hosts[0].underlay: "a"`},
		{"uplink of a Docker host", "docker:\n  hosts:\n    - {name: a, address: 'ssh://u@a', uplinks: [''], ssh: {key: k, known_hosts: h}}", `croft.yaml:3: docker.hosts[0].uplinks[0]: ""`},
		{"underlay of the Docker host that is this machine", "docker:\n  hosts:\n    - {name: a, address: 'unix:///a', underlay: 192.0.2.1}", `croft.yaml:3: docker.hosts[0]: of this machine, links.underlay`},
		{"no such layout", "mapping: {layout: heap}", "mapping.layout: "},
		{"no effort", "mapping: {effort: 0}", "mapping.effort: 0"},
		{"cost below nothing", "mapping: {costs: {trunk: -1}}", "mapping.costs.trunk: -1"},
		{"simulated rate no number", "simulated: {fail: {make: .nan}}", "simulated.fail.make: "},
		{"nothing is given back", "simulated: {fail: {remove: 1}}", "simulated.fail.remove: 1: nothing"},
		{"log level", "# comment\nlog: {level: loud}", `croft.yaml:2: log.level: "loud"`},
		{"empty file name", "# comment\ndatabase: ''", "croft.yaml:2: database: empty"},
		{"too long", strings.Repeat("#", maxFile+1), "longer than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("croft.yaml", []byte(test.text), "/srv/croft")
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
		})
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	_, err := Parse("croft.yaml", []byte("listen: x\nlog: {level: loud, format: big}"), "/")
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Fatalf("got %v, want three errors", err)
	}
	var one *Error
	if !errors.As(err, &one) || one.Field != "listen" {
		t.Errorf("first error is %+v", one)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "croft.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "croft init") {
		t.Errorf("missing file: %v", err)
	}
	data, err := New("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "trusted"); c.Trusted != want {
		t.Errorf("trusted is %s, want %s", c.Trusted, want)
	}
}

func TestUnits(t *testing.T) {
	for _, text := range []string{"0s", "1.5s", "10m", "12h", "30d", "36h", "-1d"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil {
			t.Error(err)
		} else if d.String() != text {
			t.Errorf("%s is written as %s", text, d)
		}
	}
	for _, text := range []string{"", "d", "1", "9999999999d", "200000d"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %s", text, d)
		}
	}
	for _, text := range []string{"0", "1", "1025", "3KiB", "10MiB", "2GiB"} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil {
			t.Error(err)
		} else if b.String() != text {
			t.Errorf("%s is written as %s", text, b)
		}
	}
	for _, text := range []string{"", "-1", "10MB", "9999999999999GiB"} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %s", text, b)
		}
	}
	if Duration(36*time.Hour).Std() != 36*time.Hour {
		t.Error("Std changes the span")
	}
}

func FuzzParse(f *testing.F) {
	data, err := New("127.0.0.1:12369")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("limits: {nesting: 1}"))
	f.Add([]byte("- x"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("croft.yaml", data, "/srv")
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v with error %v", c, err)
		}
		if c != nil && (c.Hostname == "" || !filepath.IsAbs(c.Database)) {
			t.Fatalf("incomplete: %+v", c)
		}
	})
}
