package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"croft/aggregate"
	"croft/urn"
)

const (
	// maxJumps bounds the connections to the gateway, maxStrangers those among
	// them that have not proved who they are.
	maxJumps, maxStrangers = 1024, 128
	// maxChannels bounds the ways that one connection may have open.
	maxChannels = 64
	// strangerTime bounds the time before a client has proved who it is.
	strangerTime = 20 * time.Second
	// idleTime is how long a connection may stay that leads nowhere.
	idleTime = 10 * time.Minute
	// maxTries bounds the keys that one connection may offer.
	maxTries = 10
	// maxLogged bounds what is logged of what clients say.
	maxLogged = 200
)

// Directory tells where keys lead. A key is the text of an authorized_keys
// line: type and base64. *aggregate.Service implements it.
type Directory interface {
	// Members tells whose key it is; nobody's if it leads nowhere now.
	Members(ctx context.Context, key string) ([]urn.URN, error)
	// Reachable lists the nodes that it leads to, by name.
	Reachable(ctx context.Context, key string) ([]string, error)
	// Reach finds the way to a port of a node by one of the node's names.
	Reach(ctx context.Context, key, name string, port int) (*aggregate.Visit, error)
}

var _ Directory = (*aggregate.Service)(nil)

// Jump is an SSH server that members go through to their nodes (ssh -J). It
// lets in the keys that lead somewhere, under any account name; it opens
// direct-tcpip channels to nodes and nothing else, and cuts them when the key
// leads there no more. Every connection is in the log.
type Jump struct {
	nodes   Directory
	clock   func() time.Time
	log     *slog.Logger
	who     string
	server  *ssh.ServerConfig
	sources *sources

	strangers chan struct{}
	wg        sync.WaitGroup
}

// JumpConfig is what a Jump works with.
type JumpConfig struct {
	Nodes   Directory
	HostKey ssh.Signer
	Testbed string // what it calls itself to those who want a shell
	Clock   func() time.Time
	Log     *slog.Logger
}

// NewJump makes a jump host.
func NewJump(c JumpConfig) *Jump {
	j := &Jump{
		nodes: c.Nodes, clock: c.Clock, log: c.Log, who: c.Testbed,
		sources: newSources(c.Clock), strangers: make(chan struct{}, maxStrangers),
	}
	j.server = &ssh.ServerConfig{MaxAuthTries: maxTries, ServerVersion: "SSH-2.0-Croft", PublicKeyCallback: j.admit}
	j.server.AddHostKey(c.HostKey)
	return j
}

// What a connection's Permissions say.
const (
	keyText        = "key"
	keyFingerprint = "fingerprint"
	keyMember      = "member"
)

var errUnknownKey = errors.New("the key opens no node here")

// admit lets in the keys that lead somewhere.
func (j *Jump) admit(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	if _, ok := key.(*ssh.Certificate); ok {
		return nil, errUnknownKey
	}
	text := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	ctx, cancel := context.WithTimeout(context.Background(), strangerTime)
	defer cancel()
	members, err := j.nodes.Members(ctx, text)
	if err != nil {
		j.log.Error("looking up a key", "error", err)
		return nil, errUnknownKey
	}
	if len(members) == 0 {
		return nil, errUnknownKey
	}
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.String()
	}
	return &ssh.Permissions{Extensions: map[string]string{
		keyText: text, keyFingerprint: ssh.FingerprintSHA256(key), keyMember: strings.Join(names, " "),
	}}, nil
}

// Serve answers connections until ctx ends, and then ends them.
func (j *Jump) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer j.wg.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	places := make(chan struct{}, maxJumps)
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("the SSH gateway: %w", err)
			}
			// Out of file descriptors, most likely: wait for some to be given
			// back instead of spinning.
			j.log.Error("accepting connections to the SSH gateway", "error", err)
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case places <- struct{}{}:
			j.wg.Go(func() {
				defer func() { <-places }()
				defer c.Close()
				j.answer(ctx, c)
			})
		default:
			j.log.Warn("too many connections to the SSH gateway", "from", c.RemoteAddr().String())
			c.Close()
		}
	}
}

// answer deals with one connection.
func (j *Jump) answer(ctx context.Context, c net.Conn) {
	began, from := j.clock(), c.RemoteAddr()
	leave, err := j.sources.enter(from)
	if err != nil {
		j.log.Debug("refused a connection to the SSH gateway", "from", from.String(), "why", err)
		return
	}
	proved := false
	defer func() { leave(!proved) }()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	select {
	case j.strangers <- struct{}{}:
	default:
		proved = true // it is not to blame
		j.log.Warn("too many who have not proved who they are at the SSH gateway", "from", from.String())
		return
	}
	_ = c.SetDeadline(time.Now().Add(strangerTime))
	conn, channels, requests, err := ssh.NewServerConn(c, j.server)
	<-j.strangers
	if err != nil {
		j.log.Info("jump", "method", "login", "code", "FORBIDDEN", "from", from.String(),
			"took", j.clock().Sub(began), "error", shorten(err.Error()))
		return
	}
	proved = true
	_ = c.SetDeadline(time.Time{})
	s := &session{Jump: j, conn: conn, from: from.String(), key: conn.Permissions.Extensions[keyText],
		fingerprint: conn.Permissions.Extensions[keyFingerprint], member: conn.Permissions.Extensions[keyMember],
		slots: make(chan struct{}, maxChannels)}
	why := s.serve(ctx, channels, requests)
	j.log.Info("jump", "method", "connection", "code", "SUCCESS", "took", j.clock().Sub(began), "from", s.from,
		"caller", s.member, "key", s.fingerprint, "account", shorten(conn.User()), "channels", s.count, "end", why)
}

func shorten(text string) string {
	if len(text) > maxLogged {
		text = text[:maxLogged] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
