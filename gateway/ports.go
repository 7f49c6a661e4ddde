// Package gateway is the way in to nodes for SSH clients from outside.
//
// Every node that is provisioned has a port of its own here, which its
// manifest names. A connection to it is carried to the node's SSH server by a
// dial function of the aggregate's; no address of a node is ever dialled from
// the manager's own network.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"croft/slivers"
	"croft/urn"
)

const (
	// maxConnections bounds the connections to one node at a time.
	maxConnections = 256
	// dialTime bounds how long a node may take to answer.
	dialTime = 20 * time.Second
)

// Ports listens for logins to nodes. It implements aggregate.Entrances.
type Ports struct {
	listen string // address to listen on
	host   string // what clients call it
	from   int
	to     int
	log    *slog.Logger

	mu   sync.Mutex
	next int // where the search for a free port goes on
	open map[urn.URN]*entrance
}

// Config says where Ports listens.
type Config struct {
	Address  string // IP to listen on
	Host     string // name or IP that manifests tell
	From, To int    // ports, both ends included
	Log      *slog.Logger
}

// NewPorts makes Ports with nothing open.
func NewPorts(c Config) *Ports {
	return &Ports{listen: c.Address, host: c.Host, from: c.From, to: c.To, log: c.Log, next: c.From, open: map[urn.URN]*entrance{}}
}

// Dial connects to a node's SSH server.
type Dial = func(context.Context) (net.Conn, error)

type entrance struct {
	node     urn.URN
	listener net.Listener
	dial     Dial
	login    slivers.Login
	log      *slog.Logger
	ctx      context.Context
	end      context.CancelFunc
	slots    chan struct{}
}

// ErrNoPort says that every port of the range is taken.
var ErrNoPort = errors.New("every login port is taken")

// Open listens for logins to a node: at port if that is free, else at any
// other of the range. Opening again what is open is success.
func (p *Ports) Open(_ context.Context, node urn.URN, port int, dial Dial) (slivers.Login, error) {
	node = node.Canonical()
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.open[node]; e != nil {
		return e.login, nil
	}
	l, err := p.bind(port)
	if err != nil {
		return slivers.Login{}, err
	}
	ctx, end := context.WithCancel(context.Background())
	e := &entrance{
		node: node, listener: l, dial: dial, log: p.log, ctx: ctx, end: end, slots: make(chan struct{}, maxConnections),
		login: slivers.Login{Host: p.host, Port: l.Addr().(*net.TCPAddr).Port},
	}
	p.open[node] = e
	go e.serve()
	return e.login, nil
}

// bind listens at the port wished for, or at the next free one. p.mu is held.
func (p *Ports) bind(wish int) (net.Listener, error) {
	if wish != 0 {
		if l, err := p.listenAt(wish); err == nil {
			return l, nil
		}
	}
	for range p.to - p.from + 1 {
		port := p.next
		if p.next++; p.next > p.to {
			p.next = p.from
		}
		l, err := p.listenAt(port)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listening for logins: %w", err)
		}
	}
	return nil, fmt.Errorf("%w: %d to %d on %s; widen login_ports in croft.yaml", ErrNoPort, p.from, p.to, p.listen)
}

func (p *Ports) listenAt(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(p.listen, strconv.Itoa(port)))
}

// Close ends the way in to a node, and the connections through it.
func (p *Ports) Close(node urn.URN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	node = node.Canonical()
	if e := p.open[node]; e != nil {
		e.close()
		delete(p.open, node)
	}
}

// CloseAll closes every way in.
func (p *Ports) CloseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node, e := range p.open {
		e.close()
		delete(p.open, node)
	}
}

func (e *entrance) close() {
	e.end()
	e.listener.Close()
}

func (e *entrance) serve() {
	for {
		c, err := e.listener.Accept()
		if err != nil {
			if e.ctx.Err() != nil {
				return
			}
			// Out of file descriptors, most likely: wait for some to be given
			// back instead of spinning.
			e.log.Error("accepting logins", "sliver", e.node.String(), "error", err)
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-e.ctx.Done():
				return
			}
		}
		select {
		case e.slots <- struct{}{}:
			go func() {
				defer func() { <-e.slots }()
				e.carry(c)
			}()
		default:
			e.log.Warn("too many logins at once", "sliver", e.node.String(), "from", c.RemoteAddr().String())
			c.Close()
		}
	}
}

// carry moves bytes between a client and the node until either ends.
func (e *entrance) carry(client net.Conn) {
	defer client.Close()
	ctx, cancel := context.WithTimeout(e.ctx, dialTime)
	node, err := e.dial(ctx)
	cancel()
	if err != nil {
		e.log.Info("login to a node that does not answer", "sliver", e.node.String(), "from", client.RemoteAddr().String(), "error", err)
		return
	}
	defer node.Close()
	stop := context.AfterFunc(e.ctx, func() {
		client.Close()
		node.Close()
	})
	defer stop()
	e.log.Info("login", "sliver", e.node.String(), "from", client.RemoteAddr().String())
	var both sync.WaitGroup
	both.Add(2)
	go func() { defer both.Done(); pass(node, client) }()
	go func() { defer both.Done(); pass(client, node) }()
	both.Wait()
}

// pass copies one direction and passes its end on.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		half.CloseWrite()
		return
	}
	to.Close()
	from.Close()
}
