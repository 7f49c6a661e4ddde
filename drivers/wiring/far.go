package wiring

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/internal/nodeinit"
	"croft/urn"
)

// A Switch on another machine is worked by a process there, in the network of
// that machine, which goes on when the manager ends. The manager sends it calls
// over a stream and gets an answer to each: both are JSON behind their length,
// four bytes.

const (
	// FarStage starts the process: nodeinit.Command(…, FarStage, SOCKET). It
	// listens on the socket, a file.
	FarStage = "switch"
	// farFrame bounds a call and an answer.
	farFrame = 16 << 20
	// farTime bounds a call, also by a context without an end.
	farTime = time.Minute
)

type farCall struct {
	Do      string
	Node    drivers.Node   `json:",omitzero"`
	PID     int            `json:",omitempty"` // of a process in the node's network
	Group   string         `json:",omitempty"` // part of its control group's name: it is no other process
	Sliver  urn.URN        `json:",omitzero"`
	Link    drivers.Link   `json:",omitzero"`
	Way     Way            `json:",omitzero"`
	Nodes   []drivers.Node `json:",omitempty"` // that the link joins
	Running []urn.URN      `json:",omitempty"`
}

type farAnswer struct {
	Error   string `json:",omitempty"`
	Missing bool   `json:",omitempty"` // the error is drivers.ErrNotFound
	Links   []Link `json:",omitempty"`
	Yes     bool   `json:",omitempty"`
}

func writeFrame(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) > farFrame {
		return fmt.Errorf("%d bytes are too many", len(data))
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}

func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > farFrame {
		return fmt.Errorf("%d bytes are too many", n)
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(data) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// Far is a Switch on another machine.
type Far struct {
	dial  func(ctx context.Context) (net.Conn, error)
	alive func(ctx context.Context) bool

	mu   sync.Mutex
	conn net.Conn
}

// NewFar returns the Switch whose process a function connects to, and another
// one says whether that is still there: its end need not end the connection.
func NewFar(dial func(ctx context.Context) (net.Conn, error), alive func(ctx context.Context) bool) *Far {
	return &Far{dial: dial, alive: alive}
}

// Close ends the connection. The Switch goes on.
func (f *Far) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drop()
}

func (f *Far) drop() error {
	if f.conn == nil {
		return nil
	}
	err := f.conn.Close()
	f.conn = nil
	return err
}

func (f *Far) call(ctx context.Context, c farCall) (farAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, farTime)
	defer cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	var a farAnswer
	if f.conn != nil && !f.alive(ctx) {
		f.drop()
	}
	err := errors.New("not connected")
	for attempt := 0; attempt < 2; attempt++ {
		fresh := f.conn == nil
		if fresh {
			if f.conn, err = f.dial(ctx); err != nil {
				f.conn = nil
				return a, fmt.Errorf("reach the switch: %w", err)
			}
		}
		if a, err = f.exchange(ctx, c); err == nil || fresh || ctx.Err() != nil {
			break
		}
	}
	switch {
	case err != nil:
		return a, fmt.Errorf("reach the switch: %w", err)
	case a.Missing:
		return a, fmt.Errorf("%s: %w", a.Error, drivers.ErrNotFound)
	case a.Error != "":
		return a, errors.New(a.Error)
	}
	return a, nil
}

// exchange sends a call and reads its answer. All calls can be sent twice.
func (f *Far) exchange(ctx context.Context, c farCall) (farAnswer, error) {
	conn := f.conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	var a farAnswer
	err := writeFrame(conn, c)
	if err == nil {
		err = readFrame(conn, &a)
	}
	if !stop() && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		f.drop()
	}
	return a, err
}

// Plug is Switch.Plug for a node with a process on the machine, whose control
// group has a name with group in it.
func (f *Far) Plug(ctx context.Context, n drivers.Node, pid int, group string) error {
	_, err := f.call(ctx, farCall{Do: "plug", Node: bare(n), PID: pid, Group: group})
	return err
}

// Plugged reports whether a node has all its interfaces.
func (f *Far) Plugged(ctx context.Context, n drivers.Node, pid int, group string) (bool, error) {
	a, err := f.call(ctx, farCall{Do: "plugged", Node: bare(n), PID: pid, Group: group})
	return a.Yes, err
}

// Unplug is Switch.Unplug.
func (f *Far) Unplug(ctx context.Context, node urn.URN) error {
	_, err := f.call(ctx, farCall{Do: "unplug", Sliver: node})
	return err
}

// Connect is Share.Connect; nodes are those that the link joins.
func (f *Far) Connect(ctx context.Context, l drivers.Link, w Way, nodes []drivers.Node) error {
	for i := range nodes {
		nodes[i] = bare(nodes[i])
	}
	_, err := f.call(ctx, farCall{Do: "connect", Link: l, Way: w, Nodes: nodes})
	return err
}

// Disconnect is Switch.Disconnect.
func (f *Far) Disconnect(ctx context.Context, link urn.URN) error {
	_, err := f.call(ctx, farCall{Do: "disconnect", Sliver: link})
	return err
}

// Links is Switch.Links.
func (f *Far) Links(ctx context.Context) ([]Link, error) {
	a, err := f.call(ctx, farCall{Do: "links"})
	return a.Links, err
}

// Sweep is Switch.Sweep.
func (f *Far) Sweep(ctx context.Context, running []urn.URN) error {
	_, err := f.call(ctx, farCall{Do: "sweep", Running: running})
	return err
}

// Shapes is Share.Shapes.
func (f *Far) Shapes(ctx context.Context, l drivers.Link, w Way) error {
	_, err := f.call(ctx, farCall{Do: "shapes", Link: l, Way: w})
	return err
}

// bare is what a switch needs of a node.
func bare(n drivers.Node) drivers.Node {
	return drivers.Node{Sliver: n.Sliver, Slice: n.Slice, Interfaces: n.Interfaces}
}

// far is the process on the other machine.
type far struct {
	sw *Switch

	mu    sync.Mutex
	nodes map[urn.URN]drivers.Node // that the manager has told of
}

// farMain is that process. What it has ends with it: the manager makes it anew.
func farMain(socket string) error {
	// An engine lets containers only read this; the switch has it set for its
	// own network.
	if err := unix.Mount("", "/proc/sys", "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("write to /proc/sys: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	f := &far{nodes: map[urn.URN]drivers.Node{}}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var err error
	f.sw, err = Open(Config{Dir: filepath.Dir(socket), Nodes: f.node, NoRelays: true, Logger: log})
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen to the manager: %w", err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return fmt.Errorf("listen to the manager: %w", err)
		}
		go func() {
			defer c.Close()
			if err := f.serve(c); !errors.Is(err, io.EOF) {
				log.Error("a call of the manager's", "err", err)
			}
		}()
	}
}

func (f *far) node(sliver urn.URN) (drivers.Node, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.nodes[sliver.Canonical()]
	return n, ok
}

func (f *far) learn(nodes ...drivers.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range nodes {
		f.nodes[n.Sliver.Canonical()] = n
	}
}

// serve answers calls until one cannot be read or answered.
func (f *far) serve(c io.ReadWriter) error {
	for {
		var call farCall
		if err := readFrame(c, &call); err != nil {
			return err
		}
		a, err := f.do(call)
		if err != nil {
			a.Error, a.Missing = err.Error(), errors.Is(err, drivers.ErrNotFound)
		}
		if err := writeFrame(c, a); err != nil {
			return err
		}
	}
}

func (f *far) do(c farCall) (a farAnswer, err error) {
	switch c.Do {
	case "plug":
		f.learn(c.Node)
		err = f.inNode(c, func(ns int) error { return f.sw.Plug(c.Node, ns) })
	case "plugged":
		err = f.inNode(c, func(ns int) error {
			devices, err := devicesOf(ns)
			a.Yes = !slices.ContainsFunc(c.Node.Interfaces, func(i drivers.Interface) bool { return !slices.Contains(devices, i.Device) })
			return err
		})
	case "unplug":
		err = f.sw.Unplug(c.Sliver)
	case "connect":
		f.learn(c.Nodes...)
		err = f.sw.connectFor("", c.Link, c.Way)
	case "disconnect":
		err = f.sw.Disconnect(c.Sliver)
	case "links":
		a.Links = f.sw.Links()
	case "sweep":
		err = f.sw.Sweep(func(sliver urn.URN) bool { return slices.ContainsFunc(c.Running, sliver.Equal) })
	case "shapes":
		if err = f.sw.ways(c.Way); err == nil {
			err = f.sw.Shapes(c.Link)
		}
	default:
		err = fmt.Errorf("no way to do %q", c.Do)
	}
	return a, err
}

// inNode runs a function with the network of a node.
func (f *far) inNode(c farCall, use func(ns int) error) error {
	ns, err := NetworkOf(c.PID)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("process %d of the node is gone: %w", c.PID, drivers.ErrNotRunning)
	}
	if err != nil {
		return err
	}
	defer ns.Close()
	groups, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID) + "/cgroup")
	if err != nil || c.Group == "" || !strings.Contains(string(groups), c.Group) {
		return fmt.Errorf("process %d is not that of the node: %w", c.PID, drivers.ErrNotRunning)
	}
	return use(int(ns.Fd()))
}

// isFar reports whether this process has been started as farMain, and with
// which socket.
func isFar(args []string) (socket string, is bool) {
	if len(args) == 4 && args[1] == nodeinit.Word && args[2] == FarStage {
		return args[3], true
	}
	return "", false
}
