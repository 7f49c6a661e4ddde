package nodeinit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const dialTime = 20 * time.Second

// serveDirect connects a user to a port that the node can reach (ssh -L, -W).
func (s *server) serveDirect(nc ssh.NewChannel) {
	var m struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}
	if err := ssh.Unmarshal(nc.ExtraData(), &m); err != nil || m.Port > 65535 {
		nc.Reject(ssh.ConnectionFailed, "bad direct-tcpip request")
		return
	}
	c, err := net.DialTimeout("tcp", net.JoinHostPort(m.Host, strconv.Itoa(int(m.Port))), dialTime)
	if err != nil {
		nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	ch, requests, err := nc.Accept()
	if err != nil {
		c.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	splice(ch, c)
}

// halfCloser is a stream whose two directions end one by one.
type halfCloser interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// splice copies both ways until both directions have ended.
func splice(a ssh.Channel, b net.Conn) {
	defer a.Close()
	defer b.Close()
	var both sync.WaitGroup
	both.Go(func() {
		io.Copy(a, b)
		a.CloseWrite()
	})
	both.Go(func() {
		io.Copy(b, a)
		if h, ok := b.(halfCloser); ok {
			h.CloseWrite()
		}
	})
	both.Wait()
}

// serveForwards serves the connection's own requests: ports of the node that
// lead to the client (ssh -R).
func (s *server) serveForwards(conn *ssh.ServerConn, requests <-chan *ssh.Request) {
	const maxForwards = 20
	listeners := map[string]net.Listener{}
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for r := range requests {
		var m struct {
			Address string
			Port    uint32
		}
		ok, payload := false, []byte(nil)
		switch r.Type {
		case "tcpip-forward":
			if ssh.Unmarshal(r.Payload, &m) != nil || m.Port > 65535 || len(listeners) >= maxForwards {
				break
			}
			if conn.User() != "root" && m.Port != 0 && m.Port < 1024 {
				break
			}
			// As OpenSSH's GatewayPorts=no: only from within the node.
			l, err := net.Listen("tcp", net.JoinHostPort("localhost", strconv.Itoa(int(m.Port))))
			if err != nil {
				break
			}
			port := uint32(l.Addr().(*net.TCPAddr).Port)
			listeners[forwardName(m.Address, port)] = l
			go forwardBack(conn, l, m.Address, port)
			ok = true
			if m.Port == 0 {
				payload = ssh.Marshal(struct{ Port uint32 }{port})
			}
		case "cancel-tcpip-forward":
			if ssh.Unmarshal(r.Payload, &m) != nil {
				break
			}
			name := forwardName(m.Address, m.Port)
			if l := listeners[name]; l != nil {
				l.Close()
				delete(listeners, name)
				ok = true
			}
		}
		if r.WantReply {
			r.Reply(ok, payload)
		}
	}
}

func forwardName(address string, port uint32) string {
	return net.JoinHostPort(address, strconv.FormatUint(uint64(port), 10))
}

func forwardBack(conn *ssh.ServerConn, l net.Listener, address string, port uint32) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		from := c.RemoteAddr().(*net.TCPAddr)
		go func() {
			ch, requests, err := conn.OpenChannel("forwarded-tcpip", ssh.Marshal(struct {
				Address  string
				Port     uint32
				From     string
				FromPort uint32
			}{address, port, from.IP.String(), uint32(from.Port)}))
			if err != nil {
				c.Close()
				return
			}
			go ssh.DiscardRequests(requests)
			splice(ch, c)
		}()
	}
}

// agentForward is the socket by which a user's programs reach the agent on
// the client's side.
type agentForward struct {
	dir, path string
	listener  net.Listener
}

func forwardAgent(conn *ssh.ServerConn, u User) (*agentForward, error) {
	dir, err := os.MkdirTemp("/run", "agent-")
	if err != nil {
		return nil, fmt.Errorf("agent socket: %w", err)
	}
	a := &agentForward{dir: dir, path: dir + "/socket"}
	a.listener, err = net.Listen("unix", a.path)
	if err == nil {
		err = errors.Join(os.Lchown(a.path, u.UID, u.GID), os.Chmod(a.path, 0o600), os.Lchown(dir, u.UID, u.GID))
	}
	if err != nil {
		a.close()
		return nil, fmt.Errorf("agent socket: %w", err)
	}
	go func() {
		for {
			c, err := a.listener.Accept()
			if err != nil {
				return
			}
			go func() {
				ch, requests, err := conn.OpenChannel("auth-agent@openssh.com", nil)
				if err != nil {
					c.Close()
					return
				}
				go ssh.DiscardRequests(requests)
				splice(ch, c)
			}()
		}
	}()
	return a, nil
}

func (a *agentForward) close() {
	if a.listener != nil {
		a.listener.Close()
	}
	os.RemoveAll(a.dir)
}
