package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"croft/aggregate"
)

// session is one client's connection to the gateway.
type session struct {
	*Jump
	conn        *ssh.ServerConn
	from        string
	key         string
	fingerprint string
	member      string
	slots       chan struct{}
	count       int // channels to nodes that were asked for
	wg          sync.WaitGroup
}

// serve answers what the client asks for, and says why that ended.
func (s *session) serve(ctx context.Context, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) (why string) {
	defer s.wg.Wait()
	defer s.conn.Close()
	go ssh.DiscardRequests(requests) // no forwarding back, whoever asks
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	ended, left := make(chan struct{}), make(chan struct{})
	defer close(left)
	open := 0
	for {
		select {
		case next, ok := <-channels:
			if !ok {
				if ctx.Err() != nil {
					return "the gateway stops"
				}
				return "the client has left"
			}
			select {
			case s.slots <- struct{}{}:
			default:
				_ = next.Reject(ssh.ResourceShortage, fmt.Sprintf("no more than %d channels at once", maxChannels))
				continue
			}
			open++
			if next.ChannelType() == "direct-tcpip" {
				s.count++
			}
			s.wg.Go(func() {
				s.channel(ctx, next)
				<-s.slots
				select {
				case ended <- struct{}{}:
				case <-left:
				}
			})
		case <-ended:
			if open--; open > 0 {
				continue
			}
			idle.Reset(idleTime)
			// Who has nowhere to go any more need not stay.
			if members, err := s.nodes.Members(ctx, s.key); err == nil && len(members) == 0 {
				return "the key opens no node any more"
			}
		case <-idle.C:
			if open == 0 {
				return "nothing was asked for"
			}
		}
	}
}

// channel answers one channel.
func (s *session) channel(ctx context.Context, next ssh.NewChannel) {
	switch next.ChannelType() {
	case "direct-tcpip":
		s.forward(ctx, next)
	case "session":
		s.noShell(ctx, next)
	default:
		_ = next.Reject(ssh.Prohibited, "this gateway leads to nodes, and does nothing else")
	}
}

// noShell tells who wants a shell, a command or a subsystem that there is
// none.
func (s *session) noShell(ctx context.Context, next ssh.NewChannel) {
	c, requests, err := next.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	timer := time.AfterFunc(strangerTime, func() { c.Close() }) // asks for nothing
	defer timer.Stop()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	for r := range requests {
		switch r.Type {
		case "shell", "exec", "subsystem":
			_ = r.Reply(true, nil)
			_, _ = io.WriteString(c.Stderr(), s.greeting(ctx))
			_, _ = c.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{1}))
			return
		case "pty-req": // OpenSSH would not ask for the shell without
			_ = r.Reply(true, nil)
		default: // agent, X11, environment
			_ = r.Reply(false, nil)
		}
	}
}

// namesTold bounds how many nodes the greeting names.
const namesTold = 20

func (s *session) greeting(ctx context.Context) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This is the SSH gateway of %s. It has no shell: it leads to nodes.\r\n", s.who)
	names, err := s.nodes.Reachable(ctx, s.key)
	if err != nil || len(names) == 0 {
		b.WriteString("Use it with ssh -J; the manifest of your slice has the names.\r\n")
		return b.String()
	}
	b.WriteString("Your key opens these, with ssh -J:\r\n")
	for i, name := range names {
		if i == namesTold {
			fmt.Fprintf(&b, "  and %d more\r\n", len(names)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\r\n", name)
	}
	return b.String()
}

// target is what a direct-tcpip channel asks for (RFC 4254, 7.2).
type target struct {
	Host       string
	Port       uint32
	Originator string
	OriginPort uint32
}

// forward connects a channel to a node.
func (s *session) forward(ctx context.Context, next ssh.NewChannel) {
	began := s.clock()
	var to target
	if err := ssh.Unmarshal(next.ExtraData(), &to); err != nil || to.Port > 65535 {
		_ = next.Reject(ssh.ConnectionFailed, "malformed target")
		return
	}
	var sent, received int64
	end := func(v *aggregate.Visit, code, why string) {
		attrs := []slog.Attr{
			slog.String("method", "direct-tcpip"), slog.String("code", code), slog.Duration("took", s.clock().Sub(began)),
			slog.String("from", s.from), slog.String("key", s.fingerprint),
			slog.String("account", shorten(s.conn.User())), slog.String("to", fmt.Sprintf("%s:%d", shorten(to.Host), to.Port)),
		}
		if v == nil {
			attrs = append(attrs, slog.String("caller", s.member))
		} else {
			attrs = append(attrs, slog.String("caller", v.Member.String()), slog.String("slice", v.Slice.String()), slog.String("sliver", v.Sliver.String()),
				slog.Int64("sent", sent), slog.Int64("received", received))
		}
		s.log.LogAttrs(ctx, slog.LevelInfo, "jump", append(attrs, slog.String("end", why))...)
	}
	visit, err := s.nodes.Reach(ctx, s.key, to.Host, int(to.Port))
	if err != nil {
		_ = next.Reject(ssh.Prohibited, plain(err))
		end(nil, "FORBIDDEN", plain(err))
		return
	}
	defer visit.Leave()
	dialing, cancel := context.WithTimeout(visit.Open, dialTime)
	stop := context.AfterFunc(ctx, cancel)
	node, err := visit.Dial(dialing)
	stop()
	cancel()
	if err != nil {
		_ = next.Reject(ssh.ConnectionFailed, "the node does not answer: "+plain(err))
		end(visit, "ERROR", "the node does not answer: "+plain(err))
		return
	}
	defer node.Close()
	c, requests, err := next.Accept()
	if err != nil {
		end(visit, "ERROR", "the client has left")
		return
	}
	defer c.Close()
	go ssh.DiscardRequests(requests)
	s.log.LogAttrs(ctx, slog.LevelInfo, "jump opened", slog.String("from", s.from), slog.String("caller", visit.Member.String()),
		slog.String("key", s.fingerprint), slog.String("sliver", visit.Sliver.String()))
	hangUp := func() {
		c.Close()
		node.Close()
	}
	cut := context.AfterFunc(visit.Open, hangUp)
	defer cut()
	ending := context.AfterFunc(ctx, hangUp)
	defer ending()
	sent, received = exchange(c, node)
	switch {
	case visit.Open.Err() != nil:
		end(visit, "SUCCESS", context.Cause(visit.Open).Error())
	case ctx.Err() != nil:
		end(visit, "SUCCESS", "the gateway stops")
	default:
		end(visit, "SUCCESS", "closed")
	}
}

// exchange moves bytes both ways until both have ended, and counts them.
func exchange(client ssh.Channel, node net.Conn) (sent, received int64) {
	var s, r atomic.Int64
	var both sync.WaitGroup
	both.Go(func() {
		n, err := io.Copy(node, client)
		s.Store(n)
		if half, ok := node.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite()
			return
		}
		node.Close()
	})
	both.Go(func() {
		n, err := io.Copy(client, node)
		r.Store(n)
		if err == nil {
			_ = client.CloseWrite()
		}
		// A node that has said all it has to say is done with the client, too.
		client.Close()
		node.Close()
	})
	both.Wait()
	return s.Load(), r.Load()
}

// plain is an error as clients are told it: what a driver says of its inner
// workings stays in the log.
func plain(err error) string {
	var own *aggregate.Error
	if errors.As(err, &own) {
		text := own.Err.Error()
		if own.Hint != "" {
			text += " (" + own.Hint + ")"
		}
		return text
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it takes too long"
	}
	return "it cannot be reached now"
}
