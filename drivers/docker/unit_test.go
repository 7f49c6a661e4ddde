package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"croft/capacity"
	"croft/urn"
)

func TestParseAddress(t *testing.T) {
	for _, test := range []struct {
		address string
		ok      bool
	}{
		{"unix:///var/run/docker.sock", true},
		{"unix://", false},
		{"unix:///", false},
		{"unix://host/path", false},
		{"tcp://docker.example.org:2376", true},
		{"tcp://[2001:db8::1]:2376", true},
		{"tcp://docker.example.org", false},
		{"tcp://docker.example.org:2376/path", false},
		{"tcp://someone@docker.example.org:2376", false},
		{"ssh://croft@docker.example.org", true},
		{"ssh://croft@docker.example.org:2222/run/docker.sock", true},
		{"ssh://docker.example.org", false},
		{"ssh://croft:secret@docker.example.org", false},
		{"http://docker.example.org", false},
		{"tcp://host:2376?x=y", false},
		{"", false},
		{"://", false},
	} {
		_, err := ParseAddress(test.address)
		if (err == nil) != test.ok {
			t.Errorf("%q: %v, want it taken: %v", test.address, err, test.ok)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells the password: %v", test.address, err)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("ssh://croft@docker.example.org:2222/run/docker.sock")
	f.Add("tcp://[::1]:2376")
	f.Fuzz(func(t *testing.T, address string) {
		u, err := ParseAddress(address)
		if err == nil && u.Scheme != "unix" && u.Hostname() == "" {
			t.Errorf("%q: no host", address)
		}
	})
}

func TestCheckHosts(t *testing.T) {
	pc := func(name string) urn.URN { return urn.URN{Authority: "example.org", Type: urn.Node, Name: name} }
	far := func(name string, components ...urn.URN) Host {
		return Host{Name: name, Address: "tcp://" + name + ":2376", Components: components}
	}
	for _, test := range []struct {
		name  string
		hosts []Host
		want  string
	}{
		{"one", []Host{LocalHost}, ""},
		{"several", []Host{LocalHost, far("a", pc("1"), pc("2")), far("b", pc("3"))}, ""},
		{"no name", []Host{{Address: LocalHost.Address}}, "name"},
		{"a name twice", []Host{far("a", pc("1")), far("a", pc("2"))}, "name"},
		{"two for the rest", []Host{LocalHost, far("a")}, "without components"},
		{"a component twice", []Host{far("a", pc("1")), far("b", pc("1"))}, "already"},
		{"this machine twice", []Host{LocalHost, {Name: "again", Address: "unix:///run/x", Components: []urn.URN{pc("1")}}}, "this machine"},
		{"no address", []Host{{Name: "a"}}, "address"},
	} {
		err := checkHosts(test.hosts)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q in it", test.name, err, test.want)
		}
	}
}

func TestHostOf(t *testing.T) {
	pc := urn.URN{Authority: "example.org", Type: urn.Node, Name: "pc1"}
	other := urn.URN{Authority: "example.org", Type: urn.Node, Name: "pc2"}
	a, rest := &host{Host: Host{Name: "a", Components: []urn.URN{pc}}}, &host{Host: Host{Name: "rest"}}
	d := &Driver{hosts: []*host{rest, a}}
	if h, err := d.hostOf(pc); h != a {
		t.Errorf("%s goes to %v, %v", pc, h, err)
	}
	if h, err := d.hostOf(other); h != rest {
		t.Errorf("%s goes to %v, %v", other, h, err)
	}
	d.hosts = []*host{a}
	if _, err := d.hostOf(other); err == nil {
		t.Error("a component that no host takes is placed")
	}
}

// frame is one frame of a container's output.
func frame(stream byte, text string) []byte {
	header := make([]byte, 8, 8+len(text))
	header[0] = stream
	binary.BigEndian.PutUint32(header[4:], uint32(len(text)))
	return append(header, text...)
}

func TestStream(t *testing.T) {
	const in, out, errs = 0, 1, 2
	for _, test := range []struct {
		name      string
		data      []byte
		out, errs string
		err       error
	}{
		{"nothing", nil, "", "", nil},
		{"output", slices.Concat(frame(out, "one "), frame(out, ""), frame(out, "two")), "one two", "", nil},
		{"both", slices.Concat(frame(out, "o"), frame(errs, "e1"), frame(out, "p"), frame(errs, "e2")), "op", "e1e2", nil},
		{"cut in a header", append(frame(out, "x"), 1, 0, 0), "x", "", io.ErrUnexpectedEOF},
		{"much on the other stream", slices.Concat(frame(errs, strings.Repeat("e", 3*maxErrors)), frame(out, "x")), "x", strings.Repeat("e", maxErrors), nil},
	} {
		for _, size := range []int{1, 3, 4096} {
			s := &stream{in: bufio.NewReaderSize(bytes.NewReader(test.data), 16)}
			var got []byte
			buf := make([]byte, size)
			var err error
			for err == nil {
				var n int
				n, err = s.Read(buf)
				got = append(got, buf[:n]...)
			}
			if test.err == nil {
				test.err = io.EOF
			}
			if string(got) != test.out || string(s.errs) != test.errs || !errors.Is(err, test.err) {
				t.Errorf("%s, %d at once: %q, %d bytes of errors, %v", test.name, size, got, len(s.errs), err)
			}
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add(frame(1, "text"))
	f.Add(slices.Concat(frame(2, "e"), frame(1, "rx")))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &stream{in: bufio.NewReader(bytes.NewReader(data))}
		got, _ := io.ReadAll(s)
		if len(got) > len(data) || len(s.errs) > maxErrors {
			t.Errorf("%d bytes, %d of errors, of %d", len(got), len(s.errs), len(data))
		}
	})
}

func TestGreet(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"there", "r", ""},
		{"refused", "econnection refused", "connection refused"},
		{"ended", "", "ended"},
	} {
		s := &stream{in: bufio.NewReader(bytes.NewReader(frame(1, test.text)))}
		err := s.greet()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/opt/bin", "HOME=/x", "LANG=C", "=odd", "SHELL=/bin/x", "EMPTY="})
	if want := []string{"PATH=/opt/bin", "LANG=C", "EMPTY="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLimit(t *testing.T) {
	var r container.Resources
	limit(&r, capacity.Amount{Cores: 1500, Memory: 256})
	if r.Memory != 256<<20 || r.MemorySwap != r.Memory || r.CPUQuota != 150_000 || r.CPUPeriod != 100_000 {
		t.Errorf("%+v", r)
	}
	limit(&r, capacity.Amount{Cores: 1, Memory: 1})
	if r.Memory != leastMemory || r.CPUQuota != 1000 {
		t.Errorf("the least: %+v", r)
	}
}
