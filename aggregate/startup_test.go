package aggregate

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"croft/drivers"
	"croft/drivers/namespace"
	"croft/languages"
	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// canned is a language whose documents name requests that a test has made.
type canned map[string]*request.Request

func (canned) Versions() []languages.Version {
	return []languages.Version{{Type: "canned", Version: "1"}}
}
func (canned) MediaType() string      { return "text/x-canned" }
func (c canned) Detect(d []byte) bool { return c[string(d)] != nil }

func (c canned) Compile(_ context.Context, d []byte, _ languages.Scope) (*languages.Compiled, error) {
	r := *c[string(d)]
	return &languages.Compiled{Version: c.Versions()[0], Request: &r}, nil
}

const realInventory = `
authority: example.org
sliver_types:
  - name: namespace
    driver: namespace
    cores: 1
    memory: 256MiB
    disk: 1GiB
hosts:
  - name: host1
    sliver_types: [namespace]
    cores: 64
    memory: 64GiB
    disk: 100GiB
    shared: true
`

// newRealBed is a bed of nodes that are namespaces.
func newRealBed(t *testing.T, documents canned) *bed {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: nodes out of namespaces need root (sudo go test …)")
	}
	b := newStoppedBed(t)
	const processes, nodes = 120, 32
	d, err := namespace.New(namespace.Config{Dir: filepath.Join(t.TempDir(), "state"),
		IDs: namespace.IDRange{First: 0x68000000 + uint32(os.Getpid()%processes)*nodes<<16, Nodes: nodes}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		list, err := d.List(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, kind := range []drivers.Kind{drivers.LinkKind, drivers.NodeKind} {
			for _, f := range list {
				if f.Kind == kind {
					if err := d.Remove(context.Background(), f.Sliver); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	b.inventory, b.languages, b.drivers = realInventory, languages.Set{documents}, map[string]drivers.Driver{"namespace": d}
	b.start()
	return b
}

// awaitTime is how long anything may take before a test gives up.
const awaitTime = 2 * time.Minute

// steps waits until the steps of a slice are as wanted.
func (b *bed) steps(slice urn.URN, what string, so func(map[request.StepName]slivers.Step) bool) map[request.StepName]slivers.Step {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), awaitTime)
	defer cancel()
	for {
		g, err := b.graph(ctx, slice)
		if err != nil {
			b.t.Fatal(err)
		}
		have := map[request.StepName]slivers.Step{}
		for _, st := range g.steps {
			have[st.Name] = st
		}
		if so(have) {
			return have
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			var text strings.Builder
			for _, st := range g.steps {
				fmt.Fprintf(&text, "\n%s: %s %s", st.Name, st.State, st.Reason)
			}
			b.t.Fatalf("waiting for %s; the steps are:%s", what, text.String())
		}
	}
}

func allOver(steps map[request.StepName]slivers.Step) bool {
	for _, st := range steps {
		if !st.State.Ended() {
			return false
		}
	}
	return len(steps) > 0
}

func run(node, name, command string, after ...request.StepName) request.Step {
	return request.Step{Name: request.StepName(name), Node: request.ClientID(node), Run: &request.Run{Command: command}, After: after}
}

func realNode(id string, addresses ...string) request.Node {
	n := request.Node{ID: request.ClientID(id), SliverType: "namespace"}
	for i, a := range addresses {
		n.Interfaces = append(n.Interfaces, request.Interface{ID: request.ClientID(fmt.Sprintf("%s:%d", id, i)), Addresses: []netip.Prefix{netip.MustParsePrefix(a)}})
	}
	return n
}

func linkOf(id string, nodes ...request.Node) request.Link {
	l := request.Link{ID: request.ClientID(id)}
	for _, n := range nodes {
		l.Ends = append(l.Ends, request.End{Node: n.ID, Interface: n.Interfaces[0].ID})
	}
	return l
}

// outputOf is what a step has written.
func (b *bed) outputOf(slice urn.URN, name request.StepName) string {
	b.t.Helper()
	p, _ := b.principal("alice", slice.Name)
	views, err := b.Startup(context.Background(), p, Target{Slice: slice}, true)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, v := range views {
		if v.Name == name {
			return string(v.Text())
		}
	}
	b.t.Fatalf("no step %s", name)
	return ""
}

func (b *bed) bringUp(slice, document string) urn.URN {
	b.t.Helper()
	p, name := b.principal("alice", slice)
	if _, err := b.Create(context.Background(), p, name, []byte(document), CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	return name
}

// Archives, services, outputs and addresses of one node are there for another,
// in order; what fails or takes too long stops what waits for it.
func TestStartupGraphAcrossNodes(t *testing.T) {
	t.Parallel()
	a, c := realNode("a", "10.1.1.1/24"), realNode("c", "10.1.1.2/24")
	a.Ports = []request.Port{{Name: "web", Number: 8000, Protocol: "tcp", URL: "http://{host}:{port}/f"}, {Name: "dns", Number: 53, Protocol: "udp"}}
	a.Env = []request.Variable{{Name: "COMMON", Value: request.Text("of all")}}
	c.Users = []request.User{{Login: "worker"}}
	archive := oneFile(t, "f", "from the archive\n")
	output := func(step, name string) request.Value {
		return request.Value{{Text: "<"}, {Output: &request.Output{Step: request.StepName(step), Name: name}}, {Text: ">"}}
	}
	attribute := func(node string, name request.AttributeName, port string) request.Value {
		return request.Value{{Attribute: &request.Attribute{Node: request.ClientID(node), Name: name, Port: port}}}
	}
	use := run("a", "a-use", `echo "$COMMON|$VALUE|$ADDRESS|$NAME|$PORT|$CROFT_NODE|$CROFT_STEP"; ping -c1 -W5 "$NAME" >/dev/null && echo reached`)
	use.Env = []request.Variable{
		{Name: "VALUE", Value: output("c-read", "VALUE")},
		{Name: "ADDRESS", Value: attribute("c", request.AttrAddress, "")},
		{Name: "NAME", Value: attribute("c", request.AttrName, "")},
		{Name: "PORT", Value: attribute("a", request.AttrPublicPort, "web")},
	}
	late := run("c", "c-late", "echo begun; sleep 1000")
	late.Limit, late.Tolerant = 2*time.Second, true
	read := run("c", "c-read", `id -un; cat /opt/site/f; echo "VALUE=$(cat /opt/site/f)" > $CROFT_OUTPUTS`, "c-site")
	read.Outputs = []string{"VALUE"}
	missing := run("a", "a-missing", "echo no", "c-read")
	missing.Env = []request.Variable{{Name: "X", Value: output("c-read", "NOTHING")}}
	b := newRealBed(t, canned{"doc": {
		Nodes: []request.Node{a, c}, Links: []request.Link{linkOf("l", a, c)},
		Steps: []request.Step{
			{Name: "a-content", Node: "a", Root: true, Files: []request.File{{Path: "/srv/www/site.tar", Mode: 0o644, Content: archive}}},
			{Name: "a-web", Node: "a", Service: &request.Service{Restart: true,
				Run: request.Run{Dir: "/srv/www", Args: []string{"python3", "-m", "http.server", "8000"}}}},
			{Name: "c-site", Node: "c", After: []request.StepName{"a-web"}, Install: &request.Install{URL: "http://a:8000/site.tar", Path: "/opt/site"}},
			read, use, missing, late,
			run("c", "c-after", "echo after the late one"),
			run("c", "c-bad", "echo bad; exit 3"),
			run("c", "c-never", "echo never"),
			run("a", "a-never", "echo never", "c-never"),
		},
	}})
	slice := b.bringUp("graph", "doc")
	got := b.steps(slice, "the end of all steps", allOver)
	for name, want := range map[request.StepName]struct {
		state  slivers.StepState
		reason string
	}{
		"a-content": {slivers.StepDone, ""}, "a-web": {slivers.StepDone, ""}, "c-site": {slivers.StepDone, ""},
		"c-read": {slivers.StepDone, ""}, "a-use": {slivers.StepDone, ""},
		"a-missing": {slivers.StepFailed, "variable X: step c-read has given no output NOTHING"},
		"c-late":    {slivers.StepFailed, "it took longer than its limit of 2s"},
		"c-after":   {slivers.StepDone, ""},
		"c-bad":     {slivers.StepFailed, "it ended with status 3"},
		"c-never":   {slivers.StepSkipped, "step c-bad failed"},
		"a-never":   {slivers.StepSkipped, "step c-never skipped"},
	} {
		if st := got[name]; st.State != want.state || st.Reason != want.reason {
			t.Errorf("%s is %s (%s), want %s (%s); it wrote %q", name, st.State, st.Reason, want.state, want.reason, b.outputOf(slice, name))
		}
	}
	if !got["a-web"].Alive {
		t.Error("the service does not run")
	}
	nodes := b.states(slice)
	port := nodes["a"].Node.Ports[0]
	want := fmt.Sprintf("of all|<from the archive>|10.1.1.2|c|%d|a|a-use\nreached\n", port.Public.Port)
	for name, want := range map[request.StepName]string{
		"a-use": want, "c-late": "begun\n", "c-read": "worker\nfrom the archive\n", "c-never": "",
	} {
		if got := b.outputOf(slice, name); got != want {
			t.Errorf("%s wrote %q, want %q", name, got, want)
		}
	}
	if owner := nodes["a"].Node.Owner.Name; owner != "alice" {
		t.Errorf("the owner is %q", owner)
	}
	if nodes["a"].Node.Ports[1].Public.Port != 0 {
		t.Error("a port of UDP is said to be reached")
	}
	if got, want := port.Link(), fmt.Sprintf("http://127.0.0.1:%d/f", port.Public.Port); got != want {
		t.Errorf("the port's URL is %q, want %q", got, want)
	}
	// The published port leads to the server in the node.
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return b.entrances.Dial(ctx, portName(nodes["a"].URN, 8000))
	}, DisableKeepAlives: true}}
	reply, err := client.Get("http://node/site.tar")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if body, err := io.ReadAll(reply.Body); err != nil || !bytes.Equal(body, archive) {
		t.Errorf("%d bytes through the port, %v; want %d", len(body), err, len(archive))
	}
	p, _ := b.principal("alice", "graph")
	values, err := b.Values(context.Background(), p, slice, []request.Value{
		output("c-read", "VALUE"), attribute("a", request.AttrPublicHost, "web"), attribute("a", request.AttrPublicPort, "dns"), output("c-never", "X"),
		attribute("c", request.AttrPrefix, ""), attribute("c", request.AttrMAC, ""), attribute("c", request.AttrDevice, ""), attribute("a", request.AttrOwner, ""),
		attribute("c", request.AttrFirstUser, ""), attribute("a", request.AttrHostname, ""), attribute("a", request.AttrSlice, ""), attribute("a", "colour", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"<from the archive>", "127.0.0.1", "", "", "10.1.1.2/24", nodes["c"].Node.Interfaces[0].MAC.String(), "eth1", "alice",
		"worker", "a.graph.example.org", slice.String(), ""} {
		if v := values[i]; v.Text != want || (v.Err != nil) != (want == "") {
			t.Errorf("value %d is %q, %v; want %q", i, v.Text, v.Err, want)
		}
	}
	outcomes, err := b.Status(context.Background(), p, Target{Slice: slice}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		wrong := ""
		switch o.Sliver.ClientID {
		case "a":
			wrong = "start-up step a-missing failed"
		case "c":
			wrong = "start-up step c-late failed"
		}
		if o.Sliver.Operational != slivers.Ready || !strings.HasPrefix(o.Error(), wrong) || wrong == "" && o.Error() != "" {
			t.Errorf("%s is %s: %q", o.Sliver.ClientID, o.Sliver.Operational, o.Error())
		}
	}
}

// Nodes find each other by name, also those that come later.
func TestNodesFindEachOther(t *testing.T) {
	t.Parallel()
	a, c := realNode("a", "10.1.1.1/24"), realNode("C_1", "10.1.1.2/24")
	e, f := realNode("e", "10.1.3.1/24"), realNode("f", "10.1.3.2/24")
	b := newRealBed(t, canned{
		"doc":  {Nodes: []request.Node{a, c}, Links: []request.Link{linkOf("l", a, c)}},
		"more": {Nodes: []request.Node{e, f}, Links: []request.Link{linkOf("l3", e, f)}},
	})
	slice := b.bringUp("hosts", "doc")
	names := func(node request.ClientID, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), awaitTime)
		defer cancel()
		for {
			var out bytes.Buffer
			v := b.states(slice)[node]
			err := b.drivers["namespace"].Exec(ctx, v.URN, drivers.Command{Args: []string{"sed", "-n", "/begin croft/,/end croft/p", "/etc/hosts"}, Stdout: &out})
			if out.String() == want {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("%s knows\n%s(%v), want\n%s", node, out.String(), err, want)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	names("a", "# begin croft\n10.1.1.2 c-1.hosts.example.org c-1\n10.1.1.2 c-1-l\n10.1.1.1 a-l\n# end croft\n")
	p, _ := b.principal("alice", "hosts")
	ctx := context.Background()
	if _, err := b.Allocate(ctx, p, slice, []byte("more"), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	// What is allocated only is known already: addresses are given.
	if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Version: geni3, Start: true}); err != nil {
		t.Fatal(err)
	}
	whole := "# begin croft\n10.1.1.2 c-1.hosts.example.org c-1\n10.1.1.2 c-1-l\n10.1.1.1 a-l\n10.1.3.1 e.hosts.example.org e\n10.1.3.1 e-l3\n10.1.3.2 f.hosts.example.org f\n10.1.3.2 f-l3\n# end croft\n"
	names("a", whole)
	nodes := b.states(slice)
	if _, err := b.Delete(ctx, p, Target{Slice: slice, Slivers: []urn.URN{nodes["f"].URN}}, false); err != nil {
		t.Fatal(err)
	}
	names("a", strings.Replace(strings.Replace(whole, "10.1.3.2 f-l3\n", "", 1), "10.1.3.2 f.hosts.example.org f\n", "", 1))
}

// A service whose end ends its document gives everything of it back.
func TestServiceThatEndsItsDocument(t *testing.T) {
	t.Parallel()
	a, c, other := realNode("a"), realNode("c"), realNode("other")
	b := newRealBed(t, canned{
		"other": {Nodes: []request.Node{other}},
		"doc": {Nodes: []request.Node{a, c}, Steps: []request.Step{
			{Name: "a-main", Node: "a", After: []request.StepName{"c-ready"},
				Service: &request.Service{Ends: true, Run: request.Run{Command: "while [ ! -e /tmp/end ]; do sleep 0.2; done"}}},
			run("c", "c-ready", "true"),
			{Name: "a-watch", Node: "a", After: []request.StepName{"a-main"}, Run: &request.Run{Command: "touch /tmp/end"}},
		}},
	})
	b.bringUp("ends", "other")
	p, slice := b.principal("alice", "ends")
	ctx := context.Background()
	if _, err := b.Allocate(ctx, p, slice, []byte("doc"), AllocateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Provision(ctx, p, Target{Slice: slice}, ProvisionOptions{Version: geni3, Start: true}); err != nil {
		t.Fatal(err)
	}
	b.steps(slice, "the end of the document", func(have map[request.StepName]slivers.Step) bool { return len(have) == 0 })
	if left := b.states(slice); len(left) != 1 || left["other"].Operational != slivers.Ready {
		t.Errorf("what is left: %v", left)
	}
}

// A restarted aggregate finds steps running or ended, and runs none twice; a
// restarted node has its services started anew, and what it interrupted tried
// again.
func TestStepsOverRestarts(t *testing.T) {
	t.Parallel()
	a := realNode("a")
	b := newRealBed(t, canned{"doc": {Nodes: []request.Node{a}, Steps: []request.Step{
		{Name: "a-serve", Node: "a", Root: true, Service: &request.Service{Run: request.Run{Command: "echo up >> /root/served; exec sleep 1000"}}},
		{Name: "a-once", Node: "a", Root: true, Run: &request.Run{Command: "echo run >> /root/once"}},
		{Name: "a-long", Node: "a", Root: true, Run: &request.Run{Command: "echo run >> /root/long; while [ ! -e /root/go ]; do sleep 0.2; done; cat /root/served /root/once /root/long"}},
	}}})
	slice := b.bringUp("restarts", "doc")
	runs := func(name request.StepName) func(map[request.StepName]slivers.Step) bool {
		return func(have map[request.StepName]slivers.Step) bool { return have[name].State == slivers.StepRunning }
	}
	b.steps(slice, "a-long", runs("a-long"))
	node := b.states(slice)["a"]
	written := func(file, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), awaitTime)
		defer cancel()
		for {
			var out bytes.Buffer
			err := b.drivers["namespace"].Exec(ctx, node.URN, drivers.Command{Args: []string{"cat", file}, Stdout: &out})
			if out.String() == want {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("%s of the node is %q (%v), want %q", file, out.String(), err, want)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	written("/root/long", "run\n")
	b.Close()
	b.start()
	got := b.steps(slice, "a-long", runs("a-long"))
	if got["a-long"].Attempt != 1 || !got["a-serve"].Alive {
		t.Errorf("after a restart of the aggregate: %+v", got)
	}
	p, _ := b.principal("alice", "restarts")
	if _, err := b.Act(context.Background(), p, Target{Slice: slice}, Restart, ActOptions{}); err != nil {
		t.Fatal(err)
	}
	b.steps(slice, "the second attempt", func(have map[request.StepName]slivers.Step) bool {
		return have["a-long"].State == slivers.StepRunning && have["a-long"].Attempt == 2 && have["a-serve"].Alive && have["a-serve"].Attempt == 2
	})
	written("/root/long", "run\nrun\n")
	if err := b.drivers["namespace"].Exec(context.Background(), node.URN, drivers.Command{Args: []string{"touch", "/root/go"}}); err != nil {
		t.Fatal(err)
	}
	got = b.steps(slice, "the end of all steps", allOver)
	if out := b.outputOf(slice, "a-long"); got["a-long"].State != slivers.StepDone || out != "up\nup\nrun\nrun\nrun\n" {
		t.Errorf("a-long is %s and wrote %q", got["a-long"].State, out)
	}
}

// oneFile is a tar with one file.
func oneFile(t *testing.T, name, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
