package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"croft/client"
	"croft/urn"
)

// python calls the aggregate by Python's standard library.
type python struct {
	testing.TB
	in  io.WriteCloser
	out *bufio.Reader
}

// reply is the answer to a call.
type reply struct {
	Reply map[string]any `json:"reply"`
	Fault []any          `json:"fault"`
	Error string         `json:"error"`
}

// python starts a client with alice's certificate.
func (b *testbed) python(args ...string) *python {
	b.Helper()
	alice := filepath.Join(b.dir, "members", "alice")
	return startPython(b.TB, b.url, filepath.Join(alice, "cert.pem"), filepath.Join(alice, "key.pem"), b.root, args...)
}

func startPython(t testing.TB, url, cert, key, root string, args ...string) *python {
	t.Helper()
	need(t, "python3")
	cmd := exec.Command("python3", append([]string{filepath.Join("testdata", "rpc.py"), url, cert, key, root}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs lastLines
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &python{TB: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("python3: %v\n%s", err, errs)
		}
	})
	return p
}

type lastLines []byte

func (l *lastLines) Write(p []byte) (int, error) {
	*l = append(*l, p...)
	if len(*l) > 4000 {
		*l = (*l)[len(*l)-4000:]
	}
	return len(p), nil
}

// call makes a call, however it ends.
func (p *python) call(method string, params ...any) reply {
	p.Helper()
	if params == nil {
		params = []any{}
	}
	line, err := json.Marshal(map[string]any{"method": method, "params": params})
	if err != nil {
		p.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		p.Fatalf("python3: %v", err)
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		p.Fatalf("python3: %v", err)
	}
	var r reply
	if err := json.Unmarshal(answer, &r); err != nil {
		p.Fatalf("python3 said %q: %v", answer, err)
	}
	return r
}

// code returns the geni_code of a reply.
func (r reply) code() (int, error) {
	if r.Reply == nil {
		return 0, fmt.Errorf("no reply: fault %v, error %q", r.Fault, r.Error)
	}
	code, _ := r.Reply["code"].(map[string]any)
	n, ok := code["geni_code"].(float64)
	if !ok {
		return 0, fmt.Errorf("code is %v", r.Reply["code"])
	}
	return int(n), nil
}

// must makes a call that has to work and returns its value.
func (p *python) must(method string, params ...any) any {
	p.Helper()
	return p.want(0, method, params...)
}

// want makes a call that has to be answered with a code. A refusal has to say
// why.
func (p *python) want(code int, method string, params ...any) any {
	p.Helper()
	r := p.call(method, params...)
	got, err := r.code()
	if err != nil {
		p.Fatalf("%s: %v", method, err)
	}
	if got != code {
		p.Fatalf("%s: code %d (%v), want %d", method, got, r.Reply["output"], code)
	}
	if output, _ := r.Reply["output"].(string); code != 0 && output == "" {
		p.Errorf("%s: code %d without a reason", method, code)
	}
	value, there := r.Reply["value"]
	if code == 0 && !there {
		p.Errorf("%s: no value", method)
	}
	return value
}

// The arguments of calls, as Python's client sends them.

func sfa(documents ...string) []any {
	list := []any{}
	for _, d := range documents {
		list = append(list, map[string]any{"geni_type": "geni_sfa", "geni_version": "3", "geni_value": d})
	}
	return list
}

func urns(list ...urn.URN) []any {
	out := []any{}
	for _, u := range list {
		out = append(out, u.String())
	}
	return out
}

// options returns options with the RSpec version that all calls may have.
func options(more ...any) map[string]any {
	o := map[string]any{"geni_rspec_version": map[string]any{"type": "GENI", "version": "3"}}
	for i := 0; i < len(more); i += 2 {
		o[more[i].(string)] = more[i+1]
	}
	return o
}

// sliver is one of geni_slivers.
type sliver map[string]any

func (s sliver) text(name string) string { t, _ := s[name].(string); return t }

// slivers returns the slivers of a reply.
func (p *python) slivers(value any) []sliver {
	p.Helper()
	if m, ok := value.(map[string]any); ok {
		value = m["geni_slivers"]
	}
	list, ok := value.([]any)
	if !ok {
		p.Fatalf("no slivers in %v", value)
	}
	var out []sliver
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			p.Fatalf("a sliver is %v", item)
		}
		for _, name := range []string{"geni_sliver_urn", "geni_allocation_status", "geni_expires"} {
			if text, ok := m[name].(string); !ok || text == "" {
				p.Errorf("sliver without %s: %v", name, m)
			}
		}
		if _, err := urn.Parse(sliver(m).text("geni_sliver_urn")); err != nil {
			p.Error(err)
		}
		if _, err := client.ParseTime(sliver(m).text("geni_expires")); err != nil {
			p.Error(err)
		}
		out = append(out, m)
	}
	return out
}
