package rspec_test

import (
	"bytes"
	"errors"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/beevik/etree"

	"croft/languages"
	"croft/rspec"
	"croft/slivers"
)

// goodRequests are those of testdata that compile.
func goodRequests(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repository(t), "testdata", "requests", "*.rspec"))
	if err != nil || len(paths) < 12 {
		t.Fatalf("requests of testdata: %d, %v", len(paths), err)
	}
	all := map[string][]byte{}
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), ".rspec")
		if name != "mistakes" {
			all[name] = requestFile(t, name+".rspec")
		}
	}
	return all
}

func TestManifestGolden(t *testing.T) {
	for name, document := range goodRequests(t) {
		t.Run(name, func(t *testing.T) {
			c := compile(t, document, scope())
			before := bytes.Clone(document)
			m := manifest(t, rspec.ManifestInput{
				Documents: []slivers.Document{original(1, document)},
				Slivers:   provision(place(c.Request, 1)),
				Version:   c.Version,
				Now:       noon,
			})
			if !bytes.Equal(document, before) {
				t.Error("the original was changed")
			}
			golden(t, "manifests/"+name+".xml", m)
			if d := difference(document, m); d != "" {
				t.Errorf("not the request with additions: %s", d)
			}
			if a, b := around(document), around(m); a != b {
				t.Errorf("around the root: %q became %q", a, b)
			}
		})
	}
}

func TestManifestIsValid(t *testing.T) {
	dir := schemaTool(t)
	valid := map[string][]byte{}
	old := map[string][]byte{}
	requests := goodRequests(t)
	delete(requests, "several-managers") // has other aggregates' links, which stay as they are
	for name, document := range requests {
		c := compile(t, document, scope())
		in := rspec.ManifestInput{
			Documents: []slivers.Document{original(1, document)}, Slivers: place(c.Request, 1), Now: noon,
		}
		valid[name+" allocated"] = manifest(t, in)
		in.Version = rspec.ProtoGENI2.Version()
		old[name+" allocated"] = manifest(t, in)
		in.Slivers = provision(in.Slivers)
		in.Gateway = jump("")
		old[name+" provisioned"] = manifest(t, in)
		in.Version = rspec.GENI3.Version()
		valid[name+" provisioned"] = manifest(t, in)
	}
	for name, why := range violations(t, filepath.Join(dir, "manifest.xsd"), valid) {
		t.Errorf("%s: not valid GENI 3: %s\n%s", name, why, valid[name])
	}
	delete(valid, "extensions allocated") // breaks its extensions' own schemas
	delete(valid, "extensions provisioned")
	for name, why := range violations(t, filepath.Join(dir, "all-manifest.xsd"), valid) {
		t.Errorf("%s: not valid with extensions: %s\n%s", name, why, valid[name])
	}
	for name, why := range violations(t, filepath.Join(dir, "protogeni-2", "manifest.xsd"), old) {
		t.Errorf("%s: not valid ProtoGENI 2: %s\n%s", name, why, old[name])
	}
}

func TestManifestOfSome(t *testing.T) {
	document := requestFile(t, "several-managers.rspec")
	c := compile(t, document, scope())
	all := place(c.Request, 1)
	for _, test := range []struct {
		name       string
		show       []slivers.Sliver
		want, not  []string
		unmodified bool
	}{
		{
			"one node", all[:1],
			[]string{`client_id="here0"`, `client_id="there0"`, `client_id="there1"`, `client_id="remote"`, "<!-- here -->", "<!-- there -->"},
			[]string{`client_id="here1"`, `client_id="local"`}, false,
		},
		{
			"the link", all[2:],
			[]string{`client_id="local"`, `client_id="remote"`},
			[]string{`<node client_id="here0"`, `<node client_id="here1"`}, false,
		},
		{
			"nothing", nil,
			[]string{`client_id="there0"`, `client_id="remote"`},
			[]string{`"here0"`, `"here1"`, `client_id="local"`}, false,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := string(manifest(t, rspec.ManifestInput{Documents: []slivers.Document{original(1, document)}, Slivers: test.show, Now: noon}))
			for _, w := range test.want {
				if !strings.Contains(m, w) {
					t.Errorf("no %s in\n%s", w, m)
				}
			}
			for _, n := range test.not {
				if strings.Contains(m, n) {
					t.Errorf("%s in\n%s", n, m)
				}
			}
		})
	}
	t.Run("others are untouched", func(t *testing.T) {
		m := manifest(t, rspec.ManifestInput{Documents: []slivers.Document{original(1, document)}, Slivers: all, Now: noon})
		from := bytes.Index(document, []byte("<!-- there -->"))
		to := bytes.Index(document, []byte(`<link client_id="local"`))
		if !bytes.Contains(m, document[from:to]) {
			t.Errorf("nodes of another aggregate changed:\n%s", m)
		}
		from = bytes.Index(document, []byte(`<link client_id="remote"`))
		if !bytes.Contains(m, bytes.TrimRight(document[from:], "\n")) {
			t.Errorf("a link of another aggregate changed:\n%s", m)
		}
	})
}

func TestManifestOfSeveralDocumentsGolden(t *testing.T) {
	first := requestFile(t, "extensions.rspec")
	second := requestFile(t, "prefixed-xml11.rspec")
	third := requestFile(t, "several-managers.rspec")
	again := bytes.ReplaceAll(third, []byte(`"here`), []byte(`"more`))
	again = bytes.ReplaceAll(again, []byte(`"local"`), []byte(`"local2"`))
	old := requestFile(t, "protogeni-2.rspec")
	documents := []slivers.Document{
		original(1, first), original(2, second), original(3, third), original(4, again), original(5, old),
		{ID: 6, Slice: slice, MediaType: "application/yaml", Bytes: []byte("node: one")},
	}
	var all []slivers.Sliver
	for _, d := range documents[:5] {
		all = append(all, place(compile(t, d.Bytes, scope()).Request, d.ID)...)
	}
	foreign := place(compile(t, requestFile(t, "two-nodes.rspec"), scope()).Request, 6)
	all = provision(append(all, foreign...))
	m := manifest(t, rspec.ManifestInput{Documents: documents, Slivers: all, Now: noon})
	golden(t, "manifests/merged.xml", m)

	c, err := rspec.Language{}.Check(bytes.Replace(m, []byte(`type="manifest"`), []byte(`type="request"`), 1), scope())
	if err != nil {
		t.Fatal(err)
	}
	if want := len(all); c.Nodes+c.Links != want {
		t.Errorf("%d nodes and links of ours, want %d:\n%s", c.Nodes+c.Links, want, m)
	}
	if n := strings.Count(string(m), `<node client_id="there0"`); n != 1 {
		t.Errorf("a node of another aggregate that two documents have stands %d times", n)
	}
	if dir := schemaTool(t); dir != "" {
		documents = documents[:2]
		valid := manifest(t, rspec.ManifestInput{Documents: documents, Slivers: all, Now: noon})
		for _, why := range violations(t, filepath.Join(dir, "manifest.xsd"), map[string][]byte{"merged": valid}) {
			t.Errorf("not valid: %s\n%s", why, valid)
		}
	}
}

func TestManifestVersions(t *testing.T) {
	document := requestFile(t, "two-nodes.rspec")
	c := compile(t, document, scope())
	in := rspec.ManifestInput{
		Snapshot: snapshot(), Slice: slice, Documents: []slivers.Document{original(1, document)}, Slivers: place(c.Request, 1),
	}
	t.Run("not offered", func(t *testing.T) {
		in := in
		in.Version = languages.Version{Type: "ProtoGENI", Version: "0.2"}
		_, err := rspec.Manifest(in)
		var unknown *languages.UnknownVersion
		if !errors.As(err, &unknown) {
			t.Errorf("error %v, want an UnknownVersion", err)
		}
	})
	t.Run("cannot be expressed", func(t *testing.T) {
		mixed := bytes.Replace(document, []byte("</rspec>"),
			[]byte(`<x:keep xmlns:x="urn:x"><node xmlns="http://www.protogeni.net/resources/rspec/2" client_id="x"/></x:keep></rspec>`), 1)
		in := in
		in.Documents = []slivers.Document{original(1, mixed)}
		if _, err := rspec.Manifest(in); err != nil {
			t.Errorf("GENI 3: %v", err)
		}
		in.Version = rspec.ProtoGENI2.Version()
		_, err := rspec.Manifest(in)
		var unknown *languages.UnknownVersion
		if !errors.As(err, &unknown) {
			t.Errorf("ProtoGENI 2: error %v, want an UnknownVersion", err)
		}
	})
	t.Run("names in any case", func(t *testing.T) {
		in := in
		in.Version = languages.Version{Type: "geni", Version: "3"}
		if _, err := rspec.Manifest(in); err != nil {
			t.Error(err)
		}
	})
}

// A manifest that comes back as a request tells things that are no longer so.
func TestManifestOfAManifest(t *testing.T) {
	document := requestFile(t, "two-nodes.rspec")
	c := compile(t, document, scope())
	in := rspec.ManifestInput{Documents: []slivers.Document{original(1, document)}, Slivers: provision(place(c.Request, 1)), Now: noon}
	once := manifest(t, in)
	asked := bytes.Replace(once, []byte(`type="manifest"`), []byte(`type="request"`), 1)
	c = compile(t, asked, scope())
	in.Documents = []slivers.Document{original(1, asked)}
	in.Slivers = provision(place(c.Request, 1))
	if twice := manifest(t, in); !bytes.Equal(once, twice) {
		t.Errorf("the manifest of a manifest differs: %s", difference(once, twice))
	}
}

func TestManifestLogins(t *testing.T) {
	document := requestFile(t, "one-node.rspec")
	in := rspec.ManifestInput{Documents: []slivers.Document{original(1, document)}, Slivers: place(compile(t, document, scope()).Request, 1)}
	in.Slivers[0].Node.Login = slivers.Login{Host: "gate.example.org", Port: 22001}
	if m := string(manifest(t, in)); strings.Contains(m, "login") {
		t.Errorf("logins before the node is provisioned:\n%s", m)
	}
	in.Slivers = provision(in.Slivers)
	m := string(manifest(t, in))
	for _, want := range []string{
		`<login authentication="ssh-keys" hostname="gate.example.org" port="22000" username="alice"/>`,
		`<login authentication="ssh-keys" hostname="gate.example.org" port="22000" username="bob"/>`,
		`login="alice" user_urn="urn:publicid:IDN+example.org+user+alice">`,
		`<user:public_key>ssh-rsa AAAAB3NzaC1yc2E</user:public_key>`,
	} {
		if strings.Count(m, want) != 1 {
			t.Errorf("not once %s in\n%s", want, m)
		}
	}
	if strings.Contains(m, "proxy") {
		t.Errorf("a proxy without a gateway:\n%s", m)
	}
}

// jump is a gateway that calls nodes by their client_ids.
func jump(user string) rspec.Gateway {
	return rspec.Gateway{Login: slivers.Login{Host: "gateway.example.com", Port: 2222}, User: user,
		Name: func(s *slivers.Sliver) string { return string(s.ClientID) + ".example.com" }}
}

// The two ways in which the Federation RSpec shows a proxy: by an account of
// its own, and by that of the node; and beside a login without a proxy.
func TestManifestProxies(t *testing.T) {
	const (
		ns      = `<proxy:proxy xmlns:proxy="http://jfed.iminds.be/proxy/1.0" `
		ssh     = `<login authentication="ssh-keys" `
		direct  = ssh + `hostname="gate.example.org" port="22000" username="alice"/>`
		another = ssh + `hostname="gate.example.org" port="22000" username="bob"/>`
		node    = ssh + `hostname="node0.example.com" port="22" username="alice"/>`
	)
	for _, test := range []struct {
		name    string
		gateway rspec.Gateway
		direct  bool
		want    []string // in this order
		not     string
	}{
		{"an account of the gateway's", jump("proxy"), false, []string{
			ns + `proxy="proxy@gateway.example.com:2222" for="alice@node0.example.com:22"/>`,
			ns + `proxy="proxy@gateway.example.com:2222" for="bob@node0.example.com:22"/>`,
			ssh + `hostname="gateway.example.com" port="2222" username="proxy"/>`,
			node,
			`login="alice" user_urn="urn:publicid:IDN+example.org+user+alice">`,
			`login="bob" user_urn="urn:publicid:IDN+example.org+user+bob"`,
		}, "gate.example.org"},
		{"the node's account", jump(""), false, []string{
			ns + `proxy="alice@gateway.example.com:2222" for="alice@node0.example.com:22"/>`,
			ssh + `hostname="gateway.example.com" port="2222" username="alice"/>`,
			node,
			ssh + `hostname="gateway.example.com" port="2222" username="bob"/>`,
		}, "gate.example.org"},
		{"both ways", jump(""), true, []string{
			ns + `proxy="alice@gateway.example.com:2222" for="alice@node0.example.com:22"/>`,
			direct, node, another,
		}, "\x00"},
		{"directly", rspec.Gateway{}, true, []string{direct, another}, "proxy"},
		{"neither", rspec.Gateway{}, false, nil, "login"},
	} {
		t.Run(test.name, func(t *testing.T) {
			document := requestFile(t, "two-nodes.rspec")
			in := rspec.ManifestInput{Documents: []slivers.Document{original(1, document)},
				Slivers: provision(place(compile(t, document, scope()).Request, 1)), Gateway: test.gateway}
			if !test.direct {
				for i := range in.Slivers {
					if n := in.Slivers[i].Node; n != nil {
						n.Login = slivers.Login{}
					}
				}
			}
			m := string(manifest(t, in))
			rest := m
			for _, want := range test.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("no %s, or not in its place, in\n%s", want, m)
				}
				rest = after
				if strings.Count(m, want) > 1 && strings.Contains(want, "node0") {
					t.Errorf("more than one %s in\n%s", want, m)
				}
			}
			if strings.Contains(m, test.not) {
				t.Errorf("%q in\n%s", test.not, m)
			}
			// A manifest that comes back as a request keeps nothing of it.
			in.Documents = []slivers.Document{original(1, []byte(m))}
			if again := string(manifest(t, in)); strings.Count(again, "<login") != strings.Count(m, "<login") || strings.Count(again, "<proxy") != strings.Count(m, "<proxy") {
				t.Errorf("again:\n%s", again)
			}
		})
	}
}

// A request that left things open has them in its manifest.
func TestManifestFillsIn(t *testing.T) {
	document := asked(`<node client_id="a" component_manager_id="" exclusive="false"><interface client_id="a:0"><ip address="0.0.0.0" netmask=""/></interface><interface client_id="a:1"><ip address="10.0.0.1"/></interface></node>`)
	all := place(compile(t, document, scope()).Request, 1)
	all[0].Node.Exclusive = true
	all[0].Node.Interfaces[0].Addresses = []netip.Prefix{netip.MustParsePrefix("10.1.0.1/20"), netip.MustParsePrefix("fd00::1/64")}
	m := string(manifest(t, rspec.ManifestInput{Documents: []slivers.Document{original(1, document)}, Slivers: all}))
	for _, want := range []string{
		`exclusive="true"`, `component_manager_id="urn:publicid:IDN+example.org+authority+cm"`,
		`<sliver_type name="namespace"><disk_image name="urn:publicid:IDN+example.org+image+debian12"/></sliver_type>`,
		`<ip address="0.0.0.0" netmask=""/>`,
		`<ip address="10.1.0.1" netmask="255.255.240.0" type="ipv4"/>`,
		`<ip address="fd00::1" netmask="64" type="ipv6"/>`,
		`<ip address="10.0.0.1" netmask="255.255.255.0" type="ipv4"/>`,
		`mac_address="02:00:00:01:00:01"`,
	} {
		if !strings.Contains(m, want) {
			t.Errorf("no %s in\n%s", want, m)
		}
	}
}

// TestManifestCanonical has xmllint compare manifests, less what was added,
// with their requests as canonical XML.
func TestManifestCanonical(t *testing.T) {
	schemaTool(t)
	requests := goodRequests(t)
	delete(requests, "lan-of-three")   // has an empty component_manager_id, which is filled in
	delete(requests, "prefixed-xml11") // has a relative namespace, which libxml2 does not canonicalize
	for name, document := range requests {
		t.Run(name, func(t *testing.T) {
			c := compile(t, document, scope())
			m := manifest(t, rspec.ManifestInput{
				Documents: []slivers.Document{original(1, document)}, Slivers: provision(place(c.Request, 1)), Version: c.Version, Now: noon,
			})
			before, err := parse(document)
			if err != nil {
				t.Fatal(err)
			}
			after, err := parse(m)
			if err != nil {
				t.Fatal(err)
			}
			strip(before.Root(), after.Root())
			if a, b := canonical(t, before), canonical(t, after); a != b {
				t.Errorf("the request is\n%s\nthe manifest without its additions\n%s", a, b)
			}
		})
	}
}

func canonical(t *testing.T, d *etree.Document) string {
	t.Helper()
	for _, key := range []string{"type", "generated", "expires", "xsi:schemaLocation"} {
		d.Root().RemoveAttr(key)
	}
	d.WriteSettings = etree.WriteSettings{CanonicalText: true, CanonicalAttrVal: true}
	text, err := d.WriteToBytes()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("xmllint", "--nonet", "--c14n", "-")
	command.Stdin = bytes.NewReader(text)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("xmllint --c14n: %v", err)
	}
	return string(out)
}
