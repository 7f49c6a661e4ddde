package xmlrpc

import (
	"bufio"
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	kolo "github.com/kolo/xmlrpc"
)

// The other implementations that are at hand, as clients and as servers.

func TestKoloAsClient(t *testing.T) {
	srv, _ := newServer(t, nil)
	c, err := kolo.NewClient(srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	arg := map[string]any{"text": "a <é> & b\r\n", "n": int64(-7), "yes": true, "f": 1.5,
		"list": []any{"x", []any{}}, "time": time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	var got any
	if err := c.Call("one", arg, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, any(arg)) {
		t.Errorf("got %#v\nwant %#v", got, arg)
	}
	err = c.Call("none", nil, &got)
	if err == nil || !strings.Contains(err.Error(), "-32601") {
		t.Errorf("got %v", err)
	}
}

// TestKoloReadsResponses has kolo's decoder read what we write.
func TestKoloReadsResponses(t *testing.T) {
	m, err := NewResponse(Extensions{}, map[string]any{"code": map[string]any{"geni_code": 0}, "value": "<rspec/>", "output": ""})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Code struct {
			Code int `xmlrpc:"geni_code"`
		} `xmlrpc:"code"`
		Value string `xmlrpc:"value"`
	}
	r := kolo.Response(m.Bytes())
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Unmarshal(&got); err != nil || got.Value != "<rspec/>" {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := kolo.Response(NewFault(&Fault{5, "no"}).Bytes()).Err(); err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("fault: %v", err)
	}
}

func python(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skipf("python3 is not installed (apt-get install python3): %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "python3", append([]string{"-c", script}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestPythonAsClient(t *testing.T) {
	srv, _ := newServer(t, func(s *Server) {
		s.TooLarge = func(_ context.Context, e *LimitError) (any, error) { return e.Error(), nil }
	})
	out, err := python(t, `
import sys, datetime, xmlrpc.client as x
class Gzipping(x.Transport):
    encode_threshold = 100
for transport in None, Gzipping():
    s = x.ServerProxy(sys.argv[1], allow_none=True, use_builtin_types=True, transport=transport)
    args = ["a <\u00e9> \U0001F600 & b\n\t", 7, -2**31, True, 1.5, 1e100, b"\0\xff", datetime.datetime(2030, 1, 1, 12), None,
            [], {}, {"k": [{"keys": ["a", ""]}]}, "x" * 5000000]
    got = s.echo(*args)
    assert got == args, got
    assert s.one("a\rb") == "a\nb" # Python's client does not write it as a reference
    for method, code in ("none", -32601), ("fault", -32602), ("panic", -32603):
        try:
            getattr(s, method)()
            assert False, method
        except x.Fault as e:
            assert e.faultCode == code, e
    try:
        s.one("\x01")
        assert False
    except x.Fault as e:
        assert e.faultCode == -32702 and "U+0001" in e.faultString, e
assert "bytes" in x.ServerProxy(sys.argv[1]).one("x" * 20000000)
print("ok")
`, srv.URL).Output()
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%s, %v", out, err)
	}
}

func TestPythonAsServer(t *testing.T) {
	cmd := python(t, `
import xmlrpc.server as x, xmlrpc.client
s = x.SimpleXMLRPCServer(("127.0.0.1", 0), allow_none=True, use_builtin_types=True, logRequests=False)
s.register_introspection_functions()
s.register_function(lambda *a: list(a), "echo")
s.register_function(lambda: 1/0, "fail")
print(s.server_address[1], flush=True)
for i in range(4): s.handle_request()
`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{URL: "http://127.0.0.1:" + strings.TrimSpace(port) + "/RPC2", Extensions: Extensions{Nil: true}}
	want := []any{"a <é>\r\n & ]]>", 7, 1 << 30, false, 1e-20, []byte("\x00b"), time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC),
		nil, []any{}, map[string]any{"k": map[string]any{}}, strings.Repeat("<x/>", 1<<16)}
	got, err := c.Call(t.Context(), "echo", want...)
	if err != nil {
		t.Fatal(err)
	}
	// Python's server writes a carriage return as it is, and XML makes it a
	// line end.
	list := got.([]any)
	if list[0] != "a <é>\n\n & ]]>" && list[0] != "a <é>\n & ]]>" {
		t.Errorf("text %q", list[0])
	}
	list[0] = want[0]
	if !reflect.DeepEqual(list, want) {
		t.Errorf("got %.300v", list)
	}
	if names, err := c.Call(t.Context(), "system.listMethods"); err != nil || !reflect.DeepEqual(names,
		[]any{"echo", "fail", "system.listMethods", "system.methodHelp", "system.methodSignature"}) {
		t.Errorf("got %v, %v", names, err)
	}
	if _, err := c.Call(t.Context(), "fail"); err == nil || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Call(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("got %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestPerlAsClient uses the two libraries that scripts for ProtoGENI use.
func TestPerlAsClient(t *testing.T) {
	srv := httptest.NewServer(&Server{Methods: Methods{"echo": echo}})
	defer srv.Close()
	for module, script := range map[string]string{
		"RPC::XML::Client": `my $r = RPC::XML::Client->new($ARGV[0])->send_request('echo', 'a <b> & c', 7, RPC::XML::boolean->new(1), {k => ['x', 1.5]});
			die $r unless ref $r; my $v = $r->value; print join(',', $v->[0], $v->[1], $v->[2], @{$v->[3]{k}});`,
		"Frontier::Client": `my $c = Frontier::Client->new(url => $ARGV[0]); my $v = $c->call('echo', 'a <b> & c', 7, $c->boolean(1), {k => ['x', 1.5]});
			print join(',', $v->[0], $v->[1], $v->[2]->value, @{$v->[3]{k}});`,
	} {
		t.Run(module, func(t *testing.T) {
			if err := exec.Command("perl", "-M"+module, "-e", "1").Run(); err != nil {
				t.Skipf("perl's %s is not installed (apt-get install librpc-xml-perl libfrontier-rpc-perl): %v", module, err)
			}
			out, err := exec.Command("perl", "-M"+module, "-e", script, srv.URL).CombinedOutput()
			if err != nil || string(out) != "a <b> & c,7,1,x,1.5" {
				t.Errorf("%s, %v", out, err)
			}
		})
	}
}
