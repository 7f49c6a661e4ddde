package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// tunnel is the way to the socket of a Docker host over SSH. The connection is
// made when it is needed, and made again when it has broken.
type tunnel struct {
	address string
	socket  string
	config  *ssh.ClientConfig

	mu   sync.Mutex
	conn *ssh.Client
}

const sshTime = 20 * time.Second

func newTunnel(u *url.URL, conf SSH) (*tunnel, error) {
	if conf.Key == "" || conf.KnownHosts == "" {
		return nil, errors.New("reaching Docker by SSH needs a key and the host's keys (known_hosts)")
	}
	data, err := os.ReadFile(conf.Key)
	if err != nil {
		return nil, fmt.Errorf("read the SSH key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("read the SSH key %s: %w", conf.Key, err)
	}
	known, err := knownhosts.New(conf.KnownHosts)
	if err != nil {
		return nil, fmt.Errorf("read the host's keys: %w", err)
	}
	t := &tunnel{address: u.Host, socket: u.Path, config: &ssh.ClientConfig{
		User: u.User.Username(), Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: known, Timeout: sshTime,
	}}
	if u.Port() == "" {
		t.address = net.JoinHostPort(u.Hostname(), "22")
	}
	if t.socket == "" || t.socket == "/" {
		t.socket = defaultSocket
	}
	return t, nil
}

// dial connects to the socket.
func (t *tunnel) dial(ctx context.Context) (net.Conn, error) {
	c, fresh, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.DialContext(ctx, "unix", t.socket)
	if err == nil || fresh || ctx.Err() != nil {
		return s, err
	}
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		return nil, err
	}
	t.drop(c)
	if c, _, err = t.connect(ctx); err != nil {
		return nil, err
	}
	return c.DialContext(ctx, "unix", t.socket)
}

func (t *tunnel) connect(ctx context.Context) (c *ssh.Client, fresh bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		return t.conn, false, nil
	}
	dialer := net.Dialer{Timeout: sshTime}
	stream, err := dialer.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, false, fmt.Errorf("connect by SSH: %w", err)
	}
	stream.SetDeadline(time.Now().Add(sshTime))
	conn, channels, requests, err := ssh.NewClientConn(stream, t.address, t.config)
	if err != nil {
		stream.Close()
		return nil, false, fmt.Errorf("connect by SSH to %s: %w", t.address, err)
	}
	stream.SetDeadline(time.Time{})
	t.conn = ssh.NewClient(conn, channels, requests)
	return t.conn, true, nil
}

// drop gives up a connection that has broken.
func (t *tunnel) drop(c *ssh.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == c {
		t.conn = nil
	}
	c.Close()
}

func (t *tunnel) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		return nil
	}
	err := t.conn.Close()
	t.conn = nil
	return err
}
