package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"croft/drivers/internal/control"
	"croft/drivers/internal/nodeinit"
	"croft/drivers/internal/process"
	"croft/drivers/internal/records"
	"croft/drivers/wiring"
)

const (
	// stopGrace is how long a node has to stop by itself; its init ends
	// earlier, when its processes have.
	stopGrace = 5 * time.Second
	// bootTime bounds a start whose context has no end.
	bootTime = time.Minute
)

// start boots a node whose lock is held.
func (d *Driver) start(ctx context.Context, n *node) error {
	if n.running() != nil {
		return nil
	}
	// What is left of a node that ended by itself.
	if err := d.stop(ctx, n, 0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	if err := d.bootNode(ctx, n); err != nil {
		d.note(n, "start failed: %v", err)
		return errors.Join(err, d.stop(context.WithoutCancel(ctx), n, 0))
	}
	return nil
}

func (d *Driver) bootNode(ctx context.Context, n *node) error {
	overlays, system, err := d.image(n.rec.Node.Image)
	if err != nil {
		return err
	}
	dir := d.state.nodeDir(n.slot)
	disk := filepath.Join(dir, "disk")
	volume, err := d.openVolume(n.slot)
	if err != nil {
		return err
	}
	if volume != nil {
		defer volume.Close()
		disk = fmt.Sprintf("/proc/self/fd/%d/.", volume.Fd())
	}
	if err := makeDisk(disk, overlays, d.owner(n.slot)); err != nil {
		return err
	}
	group, missing, err := d.cgroups.prepare(n.slot, n.rec.Node.Capacity)
	if err != nil {
		return err
	}
	defer group.close()
	proc, sync, err := d.spawn(n, group)
	if err != nil {
		return err
	}
	defer sync.Close()
	n.mu.Lock()
	n.proc, n.system, n.down = proc, system, false
	n.mu.Unlock()
	run := runRecord{PID: proc.PID, Start: proc.Start, Boot: d.boot, System: system}
	if err := records.Write(d.runFile(n), run, false); err != nil {
		return err
	}
	network, err := wiring.NetworkOf(proc.PID)
	if err != nil {
		return err
	}
	defer network.Close()
	if err := d.wires.Plug(n.rec.Node, int(network.Fd())); err != nil {
		return err
	}
	var door int
	err = inNetwork(proc, func() error {
		door, err = listenControl(dir)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(door)
	if err := d.send(ctx, sync, n, proc, overlays, volume, door); err != nil {
		return err
	}
	if err := d.awaitReady(ctx, sync, n); err != nil {
		return err
	}
	// Not before: nothing but the init has run, and on a tenth of a core that
	// would take a second.
	if cores := n.rec.Node.Capacity.Cores; cores > 0 && !d.cgroups.limitCores(n.slot, cores) {
		missing = append(missing, "cores")
	}
	if len(missing) > 0 {
		d.note(n, "this kernel has no cgroups to limit: %s", strings.Join(missing, ", "))
	}
	run.Ready = true
	if err := records.Write(d.runFile(n), run, false); err != nil {
		return err
	}
	d.attend(n, proc)
	return nil
}

func (d *Driver) runFile(n *node) string {
	return filepath.Join(d.state.nodeDir(n.slot), "run.json")
}

// spawn starts the init of a node in new namespaces. It waits for the
// driver's word, and ends when the driver does before that.
func (d *Driver) spawn(n *node, group *group) (*process.Process, *net.UnixConn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	mine, theirs := os.NewFile(uintptr(pair[0]), "sync"), os.NewFile(uintptr(pair[1]), "sync")
	defer mine.Close()
	defer theirs.Close()
	conn, err := net.FileConn(mine)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("open the console: %w", err)
	}
	defer null.Close()
	console, err := os.OpenFile(d.console(n), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		err = console.Chown(d.owner(n.slot), d.owner(n.slot))
	}
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("open the console: %w", err)
	}
	defer console.Close()
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: d.owner(n.slot), Size: idsPerNode}}
	exe := fmt.Sprintf("/proc/self/fd/%d", d.program.File.Fd())
	attr := &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GOMAXPROCS=1", "GOGC=off"},
		Files: []*os.File{null, console, console, theirs},
		Sys: &syscall.SysProcAttr{
			Setsid: true,
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
				unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
			UidMappings:                ids,
			GidMappings:                ids,
			GidMappingsEnableSetgroups: true,
			Credential:                 &syscall.Credential{Uid: 0, Gid: 0},
		},
	}
	if group.unified != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(group.unified.Fd())
	}
	var proc *os.Process
	err = wiring.OnThread(func() error {
		if err := group.enter(); err != nil {
			return err
		}
		var err error
		proc, err = os.StartProcess(exe, []string{"croft-node", nodeinit.Word, nodeinit.StageBoot}, attr)
		return err
	})
	if err != nil {
		conn.Close()
		return nil, nil, explainSpawn(err)
	}
	pid := proc.Pid
	proc.Release() // it is waited for by its pidfd
	p, err := process.Watch(pid, 0)
	if err != nil {
		// It ended at once, or there are no files left.
		conn.Close()
		unix.Kill(pid, unix.SIGKILL)
		unix.Wait4(pid, nil, 0, nil)
		return nil, nil, err
	}
	return p, conn.(*net.UnixConn), nil
}

func explainSpawn(err error) error {
	hint := ""
	switch {
	case errors.Is(err, unix.EPERM):
		hint = " (making namespaces needs root)"
	case errors.Is(err, unix.ENOSPC):
		hint = " (the limits in /proc/sys/user are reached)"
	case errors.Is(err, unix.EINVAL):
		hint = " (the kernel has no user namespaces)"
	}
	return fmt.Errorf("make namespaces: %w%s", err, hint)
}

// listenControl makes the node's control socket. It runs inside the node's
// network, so that the socket does not belong to the host's; its name lies
// outside the node's tree, so that nobody in the node can connect.
func listenControl(dir string) (int, error) {
	name := filepath.Join(dir, "control")
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return -1, fmt.Errorf("make the control socket: %w", err)
	}
	at, err := os.Open(dir)
	if err != nil {
		return -1, fmt.Errorf("make the control socket: %w", err)
	}
	defer at.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make the control socket: %w", err)
	}
	// By descriptor: the directory's own name may be too long for a socket.
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/control", at.Fd())})
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("make the control socket: %w", err)
	}
	return fd, nil
}

// send hands over all that a node boots with.
func (d *Driver) send(ctx context.Context, sync *net.UnixConn, n *node, proc *process.Process, overlays []overlay, volume *os.File, door int) error {
	msg := nodeinit.Message{Control: door}
	cfg := nodeinit.Config{
		Sliver: n.rec.Node.Sliver.String(), Hostname: n.rec.Node.Hostname, HostKey: n.rec.HostKey,
		Accounts: control.Accounts(n.rec.Node.Users), ConsoleBytes: d.cfg.ConsoleBytes, OpenSSH: n.rec.Node.Image != "", Libraries: d.program.Libraries,
	}
	var fds []int
	defer func() { closeFDs(fds) }()
	var err error
	cfg.Overlays, msg.Layers, err = openLayers(overlays, proc.PID)
	if err != nil {
		return err
	}
	fds = append(fds, msg.Layers...)
	if msg.Executable, msg.Libraries, err = openProgram(d.program); err != nil {
		return err
	}
	fds = append(append(fds, msg.Executable), msg.Libraries...)
	if volume != nil {
		msg.Disk, err = unix.FcntlInt(volume.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	} else {
		msg.Disk, err = place(filepath.Join(d.state.nodeDir(n.slot), "disk"))
	}
	if err != nil {
		return err
	}
	fds = append(fds, msg.Disk)
	if msg.Config, err = memoryFile(cfg); err != nil {
		return err
	}
	fds = append(fds, msg.Config)
	if deadline, ok := ctx.Deadline(); ok {
		sync.SetDeadline(deadline)
	}
	if _, _, err := sync.WriteMsgUnix([]byte{0}, unix.UnixRights(msg.FDs()...), nil); err != nil {
		return fmt.Errorf("hand the layers over: %w%s", err, d.lastWords(n))
	}
	return nil
}

// memoryFile writes the configuration to a file that no directory has.
func memoryFile(cfg nodeinit.Config) (int, error) {
	data, err := json.Marshal(cfg)
	if err != nil {
		return -1, fmt.Errorf("write the node's configuration: %w", err)
	}
	fd, err := unix.MemfdCreate("config", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("write the node's configuration: %w", err)
	}
	for len(data) > 0 {
		k, err := unix.Write(fd, data)
		if err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("write the node's configuration: %w", err)
		}
		data = data[k:]
	}
	return fd, nil
}

// awaitReady waits until the node's users can log in.
func (d *Driver) awaitReady(ctx context.Context, sync *net.UnixConn, n *node) error {
	stop := context.AfterFunc(ctx, func() { sync.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	const maxAnswer = 4096
	kind := make([]byte, 1)
	_, err := io.ReadFull(sync, kind)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("wait for the node to boot: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("the node ended while it booted%s", d.lastWords(n))
	case kind[0] == nodeinit.AnswerReady:
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(sync, maxAnswer))
	return fmt.Errorf("boot: %s", strings.ToValidUTF8(string(text), "?"))
}

// lastWords quotes the end of a node's console.
func (d *Driver) lastWords(n *node) string {
	data, err := os.ReadFile(d.console(n))
	if err != nil || len(data) == 0 {
		return ""
	}
	const enough = 500
	return ": " + strings.ToValidUTF8(strings.TrimSpace(string(data[max(0, len(data)-enough):])), "?")
}

// note adds a line to a node's log.
func (d *Driver) note(n *node, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.log.Info("node", "sliver", n.rec.Node.Sliver.String(), "note", text)
	f, err := os.OpenFile(d.console(n), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "time=%s level=INFO msg=driver note=%q\n", d.cfg.Clock().Format(time.RFC3339Nano), text)
}

// stop ends a node, whose lock is held, and what only a running node has.
func (d *Driver) stop(ctx context.Context, n *node, grace time.Duration) error {
	n.mu.Lock()
	proc := n.proc
	n.down = true
	n.mu.Unlock()
	if err := d.wires.Unplug(n.rec.Node.Sliver); err != nil {
		return err
	}
	if proc != nil {
		if grace == 0 {
			// So that its end, of which the kernel makes the node do a part,
			// does not wait for its turns.
			d.cgroups.limitCores(n.slot, 0)
		}
		if err := proc.End(ctx, grace); err != nil {
			return err
		}
	}
	return d.clear(n)
}

// clear removes the traces of a node that does not run.
func (d *Driver) clear(n *node) error {
	if err := d.wires.Unplug(n.rec.Node.Sliver); err != nil {
		return err
	}
	if err := d.cgroups.remove(n.slot); err != nil {
		return err
	}
	for _, name := range []string{"control", "run.json"} {
		if err := os.Remove(filepath.Join(d.state.nodeDir(n.slot), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	n.mu.Lock()
	if n.proc != nil {
		n.proc.Close()
		n.proc = nil
	}
	n.system = ""
	n.mu.Unlock()
	return nil
}

// attend waits, in the background, for the end of a node, and cleans up if
// nobody else does.
func (d *Driver) attend(n *node, proc *process.Process) {
	d.background.Go(func() {
		select {
		case <-d.closing:
			return
		case <-proc.Done:
		}
		n.mu.Lock()
		expected := n.down || n.proc != proc
		n.mu.Unlock()
		if expected {
			return
		}
		n.op.Lock()
		defer n.op.Unlock()
		n.mu.Lock()
		expected = n.down || n.proc != proc
		n.mu.Unlock()
		if expected {
			return
		}
		d.note(n, "the node has ended by itself")
		if err := d.clear(n); err != nil {
			d.log.Error("clean up after a node that ended", "sliver", n.rec.Node.Sliver.String(), "err", err)
		}
	})
}
