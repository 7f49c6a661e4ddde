package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"

	"croft/gateway"
	"croft/slivers"
	"croft/urn"
)

var (
	nodeA = urn.MustParse("urn:publicid:IDN+example.org+sliver+a")
	nodeB = urn.MustParse("urn:publicid:IDN+example.org+sliver+b")
)

// node is a listener that says its name and echoes a line.
func node(t *testing.T, name string) gateway.Dial {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintf(c, "%s\n", name)
				io.Copy(c, c)
			}()
		}
	}()
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
}

func ports(t *testing.T, count int) *gateway.Ports {
	t.Helper()
	// A range that was free a moment ago: the kernel's choice and what follows.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	from := l.Addr().(*net.TCPAddr).Port
	l.Close()
	p := gateway.NewPorts(gateway.Config{Address: "127.0.0.1", Host: "testbed.example.org", From: from, To: from + count - 1,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	t.Cleanup(p.CloseAll)
	return p
}

func greeting(t *testing.T, login slivers.Login) (string, net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(login.Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return "", c
	}
	return line[:len(line)-1], c
}

func TestPortsLeadToTheirNodes(t *testing.T) {
	p := ports(t, 20)
	ctx := context.Background()
	a, err := p.Open(ctx, nodeA, 0, node(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Open(ctx, nodeB, 0, node(t, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Host != "testbed.example.org" || a.Port == b.Port {
		t.Errorf("logins %+v and %+v", a, b)
	}
	if again, err := p.Open(ctx, nodeA, 0, node(t, "other")); err != nil || again != a {
		t.Errorf("opening again: %+v, %v; want %+v", again, err, a)
	}
	for login, want := range map[slivers.Login]string{a: "a", b: "b"} {
		if got, _ := greeting(t, login); got != want {
			t.Errorf("port %d leads to %q, want %q", login.Port, got, want)
		}
	}
}

func TestCloseCutsConnections(t *testing.T) {
	p := ports(t, 20)
	login, err := p.Open(context.Background(), nodeA, 0, node(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	_, c := greeting(t, login)
	p.Close(nodeA)
	if _, err := io.ReadAll(c); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("reading from a cut connection: %v", err) // a reset is as good as an end
	}
	if c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(login.Port))); err == nil {
		c.Close()
		t.Error("the port is open after Close")
	}
	again, err := p.Open(context.Background(), nodeA, login.Port, node(t, "a"))
	if err != nil || again != login {
		t.Errorf("reopening at the old port: %+v, %v; want %+v", again, err, login)
	}
}

func TestEndOfInputIsPassedOn(t *testing.T) {
	p := ports(t, 20)
	login, err := p.Open(context.Background(), nodeA, 0, node(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	_, c := greeting(t, login)
	fmt.Fprint(c, "echo")
	c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c); err != nil || string(got) != "echo" {
		t.Errorf("after the end of input came %q, %v; want the echo", got, err)
	}
}

func TestDialFailureEndsTheConnection(t *testing.T) {
	p := ports(t, 20)
	login, err := p.Open(context.Background(), nodeA, 0, func(context.Context) (net.Conn, error) {
		return nil, errors.New("node is stopped")
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := greeting(t, login); got != "" {
		t.Errorf("a node that does not answer said %q", got)
	}
}

func TestRangeRunsOut(t *testing.T) {
	p := ports(t, 1)
	if _, err := p.Open(context.Background(), nodeA, 0, node(t, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(context.Background(), nodeB, 0, node(t, "b")); !errors.Is(err, gateway.ErrNoPort) {
		t.Errorf("opening a second node in a range of one port: %v, want ErrNoPort", err)
	}
}
