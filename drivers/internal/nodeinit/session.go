package nodeinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

const userPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

// maxEnvironment bounds what a client may set, in variables and in bytes.
const (
	maxVariables    = 200
	maxVariableSize = 16 << 10
)

// session is one channel of a user: what its requests have set up so far.
type session struct {
	srv      *server
	ch       ssh.Channel
	user     User
	groups   []uint32
	env      []string
	terminal *terminal
	agent    *agentForward
	conn     *ssh.ServerConn

	mu      sync.Mutex
	process *process // once it runs
}

func (s *server) serveSession(conn *ssh.ServerConn, c net.Conn, nc ssh.NewChannel) {
	user, groups, err := lookUp(conn.User())
	if err != nil {
		nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	ss := &session{srv: s, ch: ch, conn: conn, user: user, groups: groups}
	from, fromPort, _ := net.SplitHostPort(c.RemoteAddr().String())
	at, atPort, _ := net.SplitHostPort(c.LocalAddr().String())
	ss.env = append(slices.Clone(s.env),
		fmt.Sprintf("SSH_CLIENT=%s %s %s", from, fromPort, atPort),
		fmt.Sprintf("SSH_CONNECTION=%s %s %s %s", from, fromPort, at, atPort))
	defer ss.close()
	for r := range requests {
		ok := ss.handle(r)
		if r.WantReply {
			r.Reply(ok, nil)
		}
	}
}

// close ends what hangs on the channel. A program with a terminal gets
// SIGHUP by it; one without finds its streams closed.
func (ss *session) close() {
	ss.ch.Close()
	if ss.terminal != nil {
		ss.terminal.close()
	}
	if ss.agent != nil {
		ss.agent.close()
	}
}

func (ss *session) handle(r *ssh.Request) bool {
	switch r.Type {
	case "env":
		var m struct{ Name, Value string }
		if ssh.Unmarshal(r.Payload, &m) != nil || !isVariable(m.Name) ||
			len(ss.env)-len(ss.srv.env) >= maxVariables || len(m.Value) > maxVariableSize || strings.ContainsRune(m.Value, 0) {
			return false
		}
		ss.env = append(ss.env, m.Name+"="+m.Value)
		return true
	case "pty-req":
		return ss.openTerminal(r.Payload)
	case "window-change":
		var m struct{ Columns, Rows, Width, Height uint32 }
		if ssh.Unmarshal(r.Payload, &m) != nil || ss.terminal == nil {
			return false
		}
		return ss.terminal.setSize(m.Columns, m.Rows, m.Width, m.Height) == nil
	case "signal":
		var m struct{ Name string }
		p := ss.running()
		if ssh.Unmarshal(r.Payload, &m) != nil || p == nil {
			return false
		}
		sig, known := Signals[m.Name]
		if known {
			p.signal(sig)
		}
		return known
	case "auth-agent-req@openssh.com":
		if ss.agent != nil {
			return false
		}
		a, err := forwardAgent(ss.conn, ss.user)
		if err != nil {
			ss.srv.log.Warn("forward an agent", "account", ss.user.Name, "err", err)
			return false
		}
		ss.agent = a
		ss.env = append(ss.env, "SSH_AUTH_SOCK="+a.path)
		return true
	case "shell":
		return ss.begin(ss.user.Shell, []string{"-" + path.Base(ss.user.Shell)})
	case "exec":
		var m struct{ Command string }
		if ssh.Unmarshal(r.Payload, &m) != nil {
			return false
		}
		return ss.begin(ss.user.Shell, []string{path.Base(ss.user.Shell), "-c", m.Command})
	case "subsystem":
		var m struct{ Name string }
		if ssh.Unmarshal(r.Payload, &m) != nil || m.Name != "sftp" {
			return false
		}
		argv := selfCommand(ss.srv.dynamic, StageSFTP)
		return ss.begin(argv[0], argv)
	}
	return false
}

func isVariable(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 128
}

func (ss *session) running() *process {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.process
}

func (ss *session) openTerminal(payload []byte) bool {
	var m struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if ss.terminal != nil || ssh.Unmarshal(payload, &m) != nil || strings.ContainsRune(m.Term, 0) {
		return false
	}
	t, err := openTerminal(ss.user.UID)
	if err != nil {
		ss.srv.log.Warn("open a terminal", "account", ss.user.Name, "err", err)
		return false
	}
	t.setModes(m.Modes)
	t.setSize(m.Columns, m.Rows, m.Width, m.Height)
	ss.terminal = t
	ss.env = append(ss.env, "TERM="+m.Term, "SSH_TTY="+t.name)
	return true
}

// begin starts the session's one program.
func (ss *session) begin(file string, argv []string) bool {
	if ss.running() != nil {
		return false
	}
	p, err := ss.launch(file, argv)
	if err != nil {
		ss.srv.log.Warn("session", "account", ss.user.Name, "err", err)
		fmt.Fprintf(ss.ch.Stderr(), "%v\r\n", err)
		return false
	}
	ss.mu.Lock()
	ss.process = p
	ss.mu.Unlock()
	return true
}

func (ss *session) launch(file string, argv []string) (*process, error) {
	c := command{file: file, argv: argv, user: ss.user, groups: ss.groups, env: ss.env}
	if ss.terminal != nil {
		p, err := c.startOn(ss.srv.procs, ss.terminal.slave)
		if err != nil {
			return nil, err
		}
		ss.terminal.slave.Close()
		go io.Copy(ss.terminal.master, ss.ch)
		go func() {
			io.Copy(ss.ch, ss.terminal.master) // ends with the last process on the terminal
			finish(ss.ch, <-p.done)
		}()
		return p, nil
	}
	p, streams, err := c.start(ss.srv.procs)
	if err != nil {
		return nil, err
	}
	var out sync.WaitGroup
	out.Go(func() { io.Copy(ss.ch, streams.out); streams.out.Close() })
	out.Go(func() { io.Copy(ss.ch.Stderr(), streams.err); streams.err.Close() })
	go func() { io.Copy(streams.in, ss.ch); streams.in.Close() }()
	go func() {
		// As OpenSSH does: the session lasts as long as somebody holds its
		// output open.
		status := <-p.done
		out.Wait()
		finish(ss.ch, status)
	}()
	return p, nil
}

// finish tells how a program ended (RFC 4254, section 6.10) and closes the channel.
func finish(ch ssh.Channel, status syscall.WaitStatus) {
	if status.Signaled() {
		name := "KILL"
		for n, s := range Signals {
			if s == status.Signal() {
				name = n
			}
		}
		ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Name    string
			Core    bool
			Message string
			Lang    string
		}{name, status.CoreDump(), status.Signal().String(), ""}))
	} else {
		ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status.ExitStatus())}))
	}
	ch.CloseWrite()
	ch.Close()
}

// Signals are those that RFC 4254 names.
var Signals = map[string]syscall.Signal{
	"ABRT": unix.SIGABRT, "ALRM": unix.SIGALRM, "FPE": unix.SIGFPE, "HUP": unix.SIGHUP,
	"ILL": unix.SIGILL, "INT": unix.SIGINT, "KILL": unix.SIGKILL, "PIPE": unix.SIGPIPE,
	"QUIT": unix.SIGQUIT, "SEGV": unix.SIGSEGV, "TERM": unix.SIGTERM,
	"USR1": unix.SIGUSR1, "USR2": unix.SIGUSR2,
}

// serveExec runs one command of the driver's. It ends when the command does,
// also if something that it started holds its output open, and ends the
// command when the driver goes.
func (s *server) serveExec(nc ssh.NewChannel) {
	var want Exec
	if err := json.Unmarshal(nc.ExtraData(), &want); err != nil || len(want.Args) == 0 {
		nc.Reject(ssh.ConnectionFailed, "no command")
		return
	}
	s.procs.begin.Lock()
	user, groups, err := lookUp(want.User)
	s.procs.begin.Unlock()
	if err != nil {
		nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	c := command{argv: want.Args, user: user, groups: groups, env: slices.Concat(s.env, want.Env)}
	if err := c.find(); err != nil {
		fmt.Fprintln(ch.Stderr(), err)
		finish(ch, syscall.WaitStatus(127<<8))
		return
	}
	p, streams, err := c.start(s.procs)
	if err != nil {
		fmt.Fprintln(ch.Stderr(), err)
		finish(ch, syscall.WaitStatus(126<<8))
		return
	}
	gone := make(chan struct{})
	go func() { ssh.DiscardRequests(requests); close(gone) }()
	var out sync.WaitGroup
	out.Go(func() { copyUntil(ch, streams.out) })
	out.Go(func() { copyUntil(ch.Stderr(), streams.err) })
	go func() { io.Copy(streams.in, ch); streams.in.Close() }()
	var status syscall.WaitStatus
	select {
	case status = <-p.done:
	case <-gone:
		p.signal(unix.SIGKILL)
		status = <-p.done
	}
	streams.out.SetReadDeadline(time.Unix(1, 0))
	streams.err.SetReadDeadline(time.Unix(1, 0))
	out.Wait()
	finish(ch, status)
}

// copyUntil copies a pipe up to its end, or up to its deadline and then what
// is in it at that moment.
func copyUntil(w io.Writer, pipe *os.File) {
	defer pipe.Close()
	if _, err := io.Copy(w, pipe); !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for {
		n := 0
		raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), buf) })
		if err != nil || n <= 0 {
			return
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return
		}
	}
}
