package ssh

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

//go:embed machine.sh
var machineScript string

//go:embed exec.sh
var execScript string

// connection is the way to one machine. It is made when it is needed.
type connection struct {
	mu     sync.Mutex
	client *ssh.Client
	closed bool
}

// HostKeyError says that a machine showed another key than the inventory has.
type HostKeyError struct {
	Machine string
	Shown   ssh.PublicKey
	Pinned  []ssh.PublicKey
}

func (e *HostKeyError) Error() string {
	var pinned []string
	for _, k := range e.Pinned {
		pinned = append(pinned, k.Type()+" "+ssh.FingerprintSHA256(k))
	}
	return fmt.Sprintf("%s shows the host key %s %s, which is not the one in the inventory (%s): either the machine was set up anew, "+
		"then put its new key under host_keys, or something else answers in its place",
		e.Machine, e.Shown.Type(), ssh.FingerprintSHA256(e.Shown), strings.Join(pinned, ", "))
}

// UnreachableError says that a machine does not answer, or does not let the
// manager in.
type UnreachableError struct {
	Machine, Address string
	Err              error
}

func (e *UnreachableError) Error() string {
	// Two of the same kind read alike: no ports of this side's.
	why := e.Err.Error()
	var op *net.OpError
	switch {
	case errors.Is(e.Err, context.DeadlineExceeded):
		why = "nothing in time"
	case errors.As(e.Err, &op):
		why = op.Err.Error()
	case strings.Contains(why, "unable to authenticate"):
		why += " (does it have the manager's key, for the account that the inventory names?)"
	}
	return fmt.Sprintf("machine %s at %s does not answer as it should: %s", e.Machine, e.Address, why)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// dial connects to a machine and proves that it is the one.
func (d *Driver) dial(ctx context.Context, m Machine) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, d.c.Answer)
	defer cancel()
	var pinned []ssh.PublicKey
	var algorithms []string
	for _, text := range m.HostKeys {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("host key of %s in the inventory: %w", m.Name, err)
		}
		pinned = append(pinned, key)
		if key.Type() == ssh.KeyAlgoRSA {
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			algorithms = append(algorithms, key.Type())
		}
	}
	if len(pinned) == 0 {
		return nil, fmt.Errorf("the inventory has no host key for %s", m.Name)
	}
	// Any other kind comes last: a machine that has lost the pinned key is told
	// of as such, not as one that speaks no common algorithm.
	for _, other := range []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256} {
		if !slices.Contains(algorithms, other) {
			algorithms = append(algorithms, other)
		}
	}
	address := net.JoinHostPort(m.Address, strconv.Itoa(m.Port))
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, &UnreachableError{m.Name, address, err}
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	var wrong *HostKeyError
	c, channels, requests, err := ssh.NewClientConn(raw, address, &ssh.ClientConfig{
		User: m.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(d.c.Key)}, HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			shown := string(key.Marshal())
			if !slices.ContainsFunc(pinned, func(p ssh.PublicKey) bool { return string(p.Marshal()) == shown }) {
				wrong = &HostKeyError{Machine: m.Name, Shown: key, Pinned: pinned}
				return wrong
			}
			return nil
		},
	})
	if wrong != nil {
		raw.Close()
		return nil, wrong
	}
	if err != nil || !stop() {
		raw.Close()
		return nil, &UnreachableError{m.Name, address, errors.Join(err, ctx.Err())}
	}
	return ssh.NewClient(c, channels, requests), nil
}

// client returns the connection that operations on a machine share.
func (d *Driver) client(ctx context.Context, m Machine) (*ssh.Client, error) {
	d.mu.Lock()
	c := d.connections[m.Host.Canonical()]
	if c == nil {
		c = &connection{}
		d.connections[m.Host.Canonical()] = c
	}
	d.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the driver is closed")
	}
	if c.client != nil {
		return c.client, nil
	}
	client, err := d.dial(ctx, m)
	if err != nil {
		return nil, err
	}
	c.client = client
	go d.watch(c, client)
	return client, nil
}

// watch notices when a machine does not answer any more, and lets the next
// operation connect anew.
func (d *Driver) watch(c *connection, client *ssh.Client) {
	ended := make(chan struct{})
	go func() {
		client.Wait()
		close(ended)
	}()
	tick := time.NewTicker(d.c.Answer)
	defer tick.Stop()
	for alive := true; alive; {
		select {
		case <-ended:
			alive = false
		case <-tick.C:
			timer := time.AfterFunc(d.c.Answer, func() { client.Close() })
			_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
			timer.Stop()
			alive = err == nil
		}
	}
	client.Close()
	c.forget(client)
}

// forget drops a connection that is of no use any more.
func (c *connection) forget(client *ssh.Client) {
	client.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == client {
		c.client = nil
	}
}

func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.client != nil {
		c.client.Close()
	}
}

// disconnect forgets the shared connection to a machine, as before it boots.
func (d *Driver) disconnect(m Machine) {
	d.mu.Lock()
	c := d.connections[m.Host.Canonical()]
	d.mu.Unlock()
	if c == nil {
		return
	}
	c.mu.Lock()
	client := c.client
	c.mu.Unlock()
	if client != nil {
		c.forget(client)
	}
}

// session opens a session on a machine; a connection that turns out to be dead
// is made anew once.
func (d *Driver) session(ctx context.Context, m Machine) (*ssh.Session, error) {
	for again := true; ; again = false {
		client, err := d.client(ctx, m)
		if err != nil {
			return nil, err
		}
		s, err := newSession(ctx, client)
		if err == nil || !again || ctx.Err() != nil {
			return s, err
		}
		d.disconnect(m)
	}
}

// newSession is ssh.Client.NewSession with an end. The connection stays for
// the others who use it.
func newSession(ctx context.Context, client *ssh.Client) (*ssh.Session, error) {
	type result struct {
		s   *ssh.Session
		err error
	}
	got := make(chan result, 1)
	go func() {
		s, err := client.NewSession()
		got <- result{s, err}
	}()
	select {
	case r := <-got:
		return r.s, r.err
	case <-ctx.Done():
		go func() {
			if r := <-got; r.s != nil {
				r.s.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// MachineError is what a machine said when something could not be done on it.
type MachineError struct {
	Machine, Doing, Said string
}

func (e *MachineError) Error() string {
	// Tables show it in one line.
	return fmt.Sprintf("machine %s: %s: %s", e.Machine, e.Doing, strings.ReplaceAll(e.Said, "\n", "; "))
}

// maxSaid bounds what is kept of what a machine says.
const maxSaid = 1 << 20

// do runs an operation of machine.sh and returns what it said.
func (d *Driver) do(ctx context.Context, m Machine, stdin string, operation string, args ...string) (string, error) {
	s, err := d.session(ctx, m)
	if err != nil {
		return "", err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	var out, said bounded
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader(stdin), &out, &said
	err = s.Run(m.shell(machineScript, append([]string{operation}, args...)))
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("machine %s: %s: %w", m.Name, operation, ctx.Err())
	case errors.As(err, &exit):
		text := strings.TrimSpace(said.String())
		if text == "" {
			text = exit.Error() // a status, or the signal that ended it
		}
		return "", &MachineError{Machine: m.Name, Doing: operation, Said: text}
	}
	return "", fmt.Errorf("machine %s: %s: the connection broke: %w", m.Name, operation, err)
}

// shell is the command that runs a script as root.
func (m *Machine) shell(script string, args []string) string {
	words := []string{"/bin/sh", "-c", script, "croft"}
	if m.User != "root" {
		words = append([]string{"sudo", "-n"}, words...)
	}
	var b strings.Builder
	for _, w := range append(words, args...) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	return b.String()
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	mu sync.Mutex
	b  []byte
}

func (w *bounded) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if room := maxSaid - len(w.b); room > 0 {
		w.b = append(w.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (w *bounded) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}

// seen is what a machine says of itself.
type seen struct {
	boot     string // changes with every boot
	owner    string // URN of the sliver that has it; "" if none
	manager  string // the manager that gave it away
	running  bool
	accounts []string // its own
}

// look asks a machine.
func (d *Driver) look(ctx context.Context, m Machine) (seen, error) {
	text, err := d.do(ctx, m, "", "look")
	if err != nil {
		return seen{}, err
	}
	s := readSeen(text)
	if s.boot == "" {
		return s, &MachineError{Machine: m.Name, Doing: "look", Said: "it does not tell when it was booted (is it a Linux with /proc?)"}
	}
	d.mu.Lock()
	d.accounts[m.Host.Canonical()] = s.accounts
	d.mu.Unlock()
	return s, nil
}

// readSeen reads what the operation look writes.
func readSeen(text string) seen {
	var s seen
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "boot":
			s.boot = f[1]
		case len(f) == 3 && f[0] == "owner":
			s.owner, s.manager = f[1], f[2]
		case len(f) == 1 && f[0] == "running":
			s.running = true
		case len(f) == 2 && f[0] == "account":
			s.accounts = append(s.accounts, f[1])
		}
	}
	return s
}
