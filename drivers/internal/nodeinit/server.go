package nodeinit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// What the driver asks for over the control socket, as SSH channel types
// beside "session".
const (
	// ChannelExec runs a command; the extra data of its opening is an Exec in
	// JSON. Streams and exit status are those of a session.
	ChannelExec = "exec@croft"
	// ChannelAccounts takes a list of Account in JSON, up to the end of the
	// stream, and answers with the text of an error, or nothing.
	ChannelAccounts = "accounts@croft"
)

// Exec is a command that the driver wants run.
type Exec struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
	User string   `json:"user"` // "" for root
}

const (
	handshakeTime  = 30 * time.Second
	maxConnections = 200
	maxAccountData = 16 << 20
)

// server is the SSH server of a node. One instance serves two doors: the TCP
// port that users log in by, and the control socket, which lies outside the
// node where only the driver can reach it, so that who connects there is
// trusted.
type server struct {
	log     *slog.Logger
	procs   *processes
	hostKey ssh.Signer
	dynamic bool // see selfCommand
	env     []string
	openSSH *openSSH // serves the users in this one's place; nil: this one does

	mu       sync.Mutex
	accounts map[string][][]byte // login → public keys in wire format
	rootKeys bool                // users may log in as root
	conns    map[*login]struct{}
	applying sync.Mutex
}

// login is one connection of a user.
type login struct {
	conn *ssh.ServerConn
	key  []byte
}

func newServer(log *slog.Logger, procs *processes, hostKey ssh.Signer, dynamic bool, env []string) *server {
	return &server{log: log, procs: procs, hostKey: hostKey, dynamic: dynamic, env: env, conns: map[*login]struct{}{}}
}

// setAccounts makes the accounts, and cuts off who may not be here any more.
func (s *server) setAccounts(want []Account) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	accounts := map[string][][]byte{}
	for _, a := range want {
		keys := [][]byte{}
		for _, line := range a.Keys {
			key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
			if err != nil {
				return fmt.Errorf("a key of account %q: %w", a.Login, err)
			}
			keys = append(keys, key.Marshal())
		}
		accounts[a.Login] = keys
	}
	gone, err := applyAccounts(want)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.accounts, s.rootKeys = accounts, !hasSudo()
	var cut []*login
	for l := range s.conns {
		if !s.allowed(l.conn.User(), l.key) {
			cut = append(cut, l)
		}
	}
	s.mu.Unlock()
	for _, l := range cut {
		s.log.Info("login cut off", "account", l.conn.User())
		l.conn.Close()
	}
	if s.openSSH != nil {
		if err := s.openSSH.setAccounts(want, !hasSudo()); err != nil {
			return err
		}
	}
	endProcesses(gone)
	s.log.Info("accounts", "count", len(accounts), "gone", len(gone))
	return nil
}

// allowed is called with mu held.
func (s *server) allowed(account string, key []byte) bool {
	has := func(keys [][]byte) bool {
		for _, k := range keys {
			if bytes.Equal(k, key) {
				return true
			}
		}
		return false
	}
	if account == "root" && s.rootKeys {
		for _, keys := range s.accounts {
			if has(keys) {
				return true
			}
		}
		return false
	}
	return has(s.accounts[account])
}

func (s *server) accept(l net.Listener, serve func(net.Conn)) {
	slots := make(chan struct{}, maxConnections)
	for {
		slots <- struct{}{}
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("accept a connection", "err", err)
			time.Sleep(100 * time.Millisecond) // out of files: wait for some to be closed
			<-slots
			continue
		}
		go func() {
			defer func() { <-slots }()
			defer c.Close()
			serve(c)
		}()
	}
}

// serveLogin serves a user.
func (s *server) serveLogin(c net.Conn) {
	const keyData = "key"
	cfg := &ssh.ServerConfig{
		MaxAuthTries: 20, // agents offer all the keys they hold
		PublicKeyCallback: func(m ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.allowed(m.User(), k.Marshal()) {
				return nil, errors.New("no such key for this account")
			}
			return &ssh.Permissions{Extensions: map[string]string{keyData: string(k.Marshal())}}, nil
		},
	}
	cfg.AddHostKey(s.hostKey)
	c.SetDeadline(time.Now().Add(handshakeTime))
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.log.Info("login refused", "from", c.RemoteAddr().String(), "err", err)
		}
		return
	}
	c.SetDeadline(time.Time{})
	l := &login{conn: conn, key: []byte(conn.Permissions.Extensions[keyData])}
	s.mu.Lock()
	s.conns[l] = struct{}{}
	still := s.allowed(conn.User(), l.key)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, l)
		s.mu.Unlock()
		conn.Close()
	}()
	if !still {
		return
	}
	s.log.Info("login", "account", conn.User(), "from", c.RemoteAddr().String())
	go s.serveForwards(conn, requests)
	for ch := range channels {
		switch ch.ChannelType() {
		case "session":
			go s.serveSession(conn, c, ch)
		case "direct-tcpip":
			go s.serveDirect(ch)
		default:
			ch.Reject(ssh.UnknownChannelType, "this node serves sessions and direct-tcpip")
		}
	}
}

// serveDriver serves the driver.
func (s *server) serveDriver(c net.Conn) {
	cfg := &ssh.ServerConfig{NoClientAuth: true}
	cfg.AddHostKey(s.hostKey)
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		s.log.Warn("driver refused", "err", err)
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for ch := range channels {
		switch ch.ChannelType() {
		case ChannelExec:
			go s.serveExec(ch)
		case ChannelAccounts:
			go s.serveAccounts(ch)
		default:
			ch.Reject(ssh.UnknownChannelType, "the driver has channels of its own")
		}
	}
}

func (s *server) serveAccounts(nc ssh.NewChannel) {
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	go ssh.DiscardRequests(requests)
	var want []Account
	if err := json.NewDecoder(io.LimitReader(ch, maxAccountData)).Decode(&want); err != nil {
		fmt.Fprintf(ch, "read the accounts: %v", err)
		return
	}
	if err := s.setAccounts(want); err != nil {
		s.log.Error("accounts", "err", err)
		fmt.Fprint(ch, err)
	}
}
