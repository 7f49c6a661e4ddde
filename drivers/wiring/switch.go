package wiring

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"croft/drivers"
	"croft/drivers/internal/process"
	"croft/drivers/internal/records"
	"croft/drivers/wiring/internal/relay"
	"croft/urn"
)

// Config is what a Switch works with. Dir is needed, and Nodes unless drivers
// share the Switch.
type Config struct {
	// Dir is where the switch has its state: "switch", "links" and "ports" in
	// it are the switch's. One Switch uses it at a time, which the driver sees
	// to.
	Dir string

	// Nodes finds a node that the driver has made, running or not: links join
	// only those, and only of their own slice. It is called with locks held
	// and must not call the Switch.
	Nodes func(sliver urn.URN) (drivers.Node, bool)

	// Unowned is the driver whose links and nodes those are that earlier
	// versions have left in the directory, when no drivers shared a Switch.
	Unowned string

	// Outside is the network of the machine, which links leave it by. Default:
	// that of this process.
	Outside *os.File

	// Executable is the binary that is run again as relay, where the kernel
	// cannot delay frames; it calls Init. Default: the running one.
	Executable string

	// NoRelays has links refused that only a relay could shape.
	NoRelays bool

	// Settle moves a process that outlives the manager to where the manager's
	// end does not reach it: a cgroup of its own. Optional.
	Settle func(pid int) error

	Logger *slog.Logger // default: discard
}

// Switch connects nodes of this machine.
type Switch struct {
	cfg Config
	log *slog.Logger

	boot      string
	program   *os.File
	machine   *os.File // the network that links leave the machine by
	closing   chan struct{}
	closeOnce sync.Once
	tryKernel func() (kernel, error)

	netMu  sync.Mutex // guards what follows; comes before mu
	fabric fabric
	built  map[int]bool          // slots of links whose bridges and legs are there
	relays map[int]*relayProcess // by slot of their link

	mu         sync.Mutex // guards what follows
	shares     []*Share
	links      map[urn.URN]*linkRecord
	joined     map[endKey]*linkRecord // links by their ends
	ports      map[urn.URN]*portRecord
	trash      map[int][]string // slots of links, and what is still to be deleted of them
	background sync.WaitGroup   // deletes bridges, waits for relays
}

// linkRecord is a link as its file has it.
type linkRecord struct {
	Slot  int
	Whole bool   // false while it is made or removed
	Owner string `json:",omitempty"` // the driver that shares the switch
	Link  drivers.Link
	Way   Way `json:",omitzero"`
}

// portRecord is a node that is plugged in. Its interface number i has the port
// portName(Slot, i).
type portRecord struct {
	Slot  int
	Owner string `json:",omitempty"`
	Node  drivers.Node
}

// Link is a link as Links shows it.
type Link struct {
	drivers.Link
	Way   Way
	Whole bool // false: half-made, good only for Disconnect
}

// Open takes over what an earlier Switch on the directory has left. Close it
// to let another one use the directory.
func Open(cfg Config) (*Switch, error) {
	if cfg.Dir == "" {
		return nil, errors.New("wiring: no state directory given")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Executable == "" {
		cfg.Executable = "/proc/self/exe"
	}
	s := &Switch{cfg: cfg, log: cfg.Logger, closing: make(chan struct{}), tryKernel: sync.OnceValues(tryKernel),
		built: map[int]bool{}, relays: map[int]*relayProcess{}, trash: map[int][]string{}, links: map[urn.URN]*linkRecord{}, joined: map[endKey]*linkRecord{}, ports: map[urn.URN]*portRecord{}}
	s.fabric.pin = s.in("switch")
	if cfg.Nodes != nil {
		s.shares = []*Share{{sw: s, name: cfg.Unowned, nodes: cfg.Nodes, settle: cfg.Settle}}
	}
	if err := s.open(); err != nil {
		s.Close()
		return nil, fmt.Errorf("wiring: %w", err)
	}
	return s, nil
}

func (s *Switch) open() error {
	// Now, so that relays can be started also after it has been replaced by
	// another version.
	program, err := os.Open(s.cfg.Executable)
	if err != nil {
		return fmt.Errorf("open the program of the relays: %w", err)
	}
	defer program.Close()
	fd, err := unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, relay.SyncFD+1)
	if err != nil {
		return fmt.Errorf("open the program of the relays: %w", err)
	}
	s.program = os.NewFile(uintptr(fd), s.cfg.Executable)
	if s.boot, err = process.BootID(); err != nil {
		return err
	}
	if s.machine = s.cfg.Outside; s.machine == nil {
		if s.machine, err = os.Open("/proc/self/ns/net"); err != nil {
			return fmt.Errorf("open the network of the machine: %w", err)
		}
	}
	if err := s.adopt(); err != nil {
		return err
	}
	return s.adoptRelays()
}

// Close lets go of the switch, which goes on without the manager.
func (s *Switch) Close() error {
	s.closeOnce.Do(func() { close(s.closing) })
	s.background.Wait()
	s.netMu.Lock()
	defer s.netMu.Unlock()
	for _, p := range s.relays {
		p.Close()
	}
	clear(s.relays)
	s.fabric.close()
	if s.machine != nil && s.machine != s.cfg.Outside {
		s.machine.Close()
	}
	if s.program != nil {
		return s.program.Close()
	}
	return nil
}

func (s *Switch) in(elem ...string) string {
	return filepath.Join(append([]string{s.cfg.Dir}, elem...)...)
}

func (s *Switch) linkFile(slot int) string { return s.in("links", strconv.Itoa(slot)+".json") }

func (s *Switch) portFile(slot int) string { return s.in("ports", strconv.Itoa(slot)+".json") }

func (s *Switch) adopt() error {
	links, err := load[linkRecord](s.in("links"))
	if err != nil {
		return err
	}
	ports, err := load[portRecord](s.in("ports"))
	if err != nil {
		return err
	}
	for _, r := range links {
		if r.Owner == "" {
			r.Owner = s.cfg.Unowned
		}
		s.links[r.Link.Sliver.Canonical()] = r
		for _, e := range r.Link.Ends {
			s.joined[keyOf(e)] = r
		}
	}
	if err := s.fabric.adopt(); err != nil {
		return err
	}
	for _, r := range ports {
		if s.fabric.handle == nil { // of before a reboot
			if err := os.Remove(s.portFile(r.Slot)); err != nil {
				return fmt.Errorf("clean the state: %w", err)
			}
			continue
		}
		if r.Owner == "" {
			r.Owner = s.cfg.Unowned
		}
		s.ports[r.Node.Sliver.Canonical()] = r
	}
	return nil
}

// load reads the records of a directory, which it makes if there is none.
// What was begun before its record was written is nothing yet, and is cleaned
// away.
func load[T any](dir string) ([]*T, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	var out []*T
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		r := new(T)
		err := error(records.ErrNeverWritten)
		if strings.HasSuffix(e.Name(), ".json") {
			err = records.Read(file, r)
		}
		switch {
		case errors.Is(err, records.ErrNeverWritten):
			if err := os.Remove(file); err != nil {
				return nil, fmt.Errorf("clean the state: %w", err)
			}
		case err != nil:
			return nil, err
		default:
			out = append(out, r)
		}
	}
	return out, nil
}

// Sweep is Share.Sweep of a Switch that drivers do not share.
func (s *Switch) Sweep(running func(sliver urn.URN) bool) error {
	return s.sweep(s.cfg.Unowned, running)
}

func (s *Switch) sweep(owner string, running func(sliver urn.URN) bool) error {
	s.netMu.Lock()
	defer s.netMu.Unlock()
	s.mu.Lock()
	keep := map[string]bool{}
	var gone []*portRecord
	links := slices.Collect(maps.Values(s.links))
	for key, r := range s.ports {
		if r.Owner == owner && !running(r.Node.Sliver) {
			gone = append(gone, r)
			delete(s.ports, key)
			continue
		}
		for i := range r.Node.Interfaces {
			keep[portName(r.Slot, i)] = true
		}
	}
	s.mu.Unlock()
	for _, r := range links {
		own, segment := wayParts(r)
		for _, name := range slices.Concat(s.linkParts(r), own, segment) {
			keep[name] = true
		}
	}
	present, err := s.fabric.names()
	if err != nil {
		return err
	}
	// A relay may have ended while nobody looked.
	for _, r := range s.wholeLinks(owner) {
		if s.fabric.handle != nil {
			if err := s.build(r); err != nil {
				s.log.Error("take over a link", "sliver", r.Link.Sliver.String(), "err", err)
			}
		}
	}
	present = slices.DeleteFunc(present, func(name string) bool { return keep[name] })
	if len(present) > 0 {
		if err := s.fabric.erase(present...); err != nil {
			return err
		}
	}
	for _, r := range gone {
		if err := s.forget(r); err != nil {
			return err
		}
	}
	return s.tidy()
}

func (s *Switch) wholeLinks(owner string) []*linkRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*linkRecord
	for _, r := range s.links {
		if r.Whole && r.Owner == owner {
			out = append(out, r)
		}
	}
	return out
}

// tidy gives the fabric up when nothing is in it any more. netMu is held.
func (s *Switch) tidy() error {
	s.mu.Lock()
	empty := len(s.links) == 0 && len(s.ports) == 0
	s.mu.Unlock()
	if !empty {
		return nil
	}
	clear(s.built)
	return s.fabric.remove()
}

// Links lists all links, whole or half-made, in no order.
func (s *Switch) Links() []Link { return s.linksOf(func(string) bool { return true }) }

func (s *Switch) linksOf(owned func(owner string) bool) []Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Link, 0, len(s.links))
	for _, r := range s.links {
		if owned(r.Owner) {
			out = append(out, Link{Link: r.Link, Way: r.Way, Whole: r.Whole})
		}
	}
	return out
}

// Has reports whether there is a link, whole or half-made.
func (s *Switch) Has(link urn.URN) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links[link.Canonical()] != nil
}

func freeSlot(taken map[int]bool) int {
	for slot := 0; ; slot++ {
		if !taken[slot] {
			return slot
		}
	}
}

func removeFile(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a record: %w", err)
	}
	return nil
}
