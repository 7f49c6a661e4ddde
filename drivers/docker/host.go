package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"croft/drivers"
	"croft/drivers/wiring"
	"croft/urn"
)

// Host is a Docker host.
type Host struct {
	Name string // for messages

	// Address is unix:///PATH of a socket of this machine, tcp://HOST:PORT with
	// TLS, or ssh://USER@HOST[:PORT][/PATH of the socket there].
	Address string

	// Components are the hosts of the inventory whose nodes go here. One Docker
	// host may have none: it takes the nodes of all others.
	Components []urn.URN

	// Underlay is the machine's address in the network between the machines, by
	// which links to others go; zero for none. Uplinks are its interfaces to the
	// testbed's switches. Of this machine, Config.Machine says so.
	Underlay netip.Addr
	Uplinks  []string

	TLS TLS // for tcp
	SSH SSH // for ssh
}

// TLS names the files, PEM, that a connection by TCP is secured with.
type TLS struct{ Authority, Certificate, Key string }

// SSH names the files that a connection by SSH is secured with: a private key,
// and the host's keys in the format of known_hosts.
type SSH struct{ Key, KnownHosts string }

// LocalHost is the Docker host of this machine.
var LocalHost = Host{Name: "local", Address: "unix:///var/run/docker.sock"}

// defaultSocket is where Docker listens.
const defaultSocket = "/var/run/docker.sock"

// host is a Docker host in use.
type host struct {
	Host
	api *client.Client
	ssh *tunnel // nil unless it is reached by SSH

	wires   *farSwitch // nil if it is this machine
	machine *wiring.Machine

	time func() time.Time

	adopting chan struct{} // full while the host is taken over
	adopted  atomic.Bool

	mu      sync.Mutex
	images  map[string]*image // by their IDs
	served  []urn.URN         // components that nodes were for
	unsized bool              // it cannot limit disks
	ill     error             // of the last call, if that did not get through
	since   time.Time

	// Who makes a node reads the volume with the nodes' init, so that it is not
	// removed with the last node meanwhile; placing comes after shared.
	shared  sync.RWMutex
	placing sync.Mutex
	placed  bool // the volume is there
}

// checkHosts refuses hosts that make no sense together.
func checkHosts(hosts []Host) error {
	var rest, here string
	names, taken := map[string]bool{}, map[urn.URN]string{}
	for _, h := range hosts {
		if h.Name == "" || names[h.Name] {
			return fmt.Errorf("host %q: want a name of its own", h.Name)
		}
		names[h.Name] = true
		if len(h.Components) == 0 {
			if rest != "" {
				return fmt.Errorf("hosts %s and %s: both without components: only one host can take the nodes of all others", rest, h.Name)
			}
			rest = h.Name
		}
		if strings.HasPrefix(h.Address, "unix:") {
			if here != "" {
				return fmt.Errorf("hosts %s and %s: both are this machine, of which links know one", here, h.Name)
			}
			here = h.Name
		}
		for _, c := range h.Components {
			if other := taken[c.Canonical()]; other != "" {
				return fmt.Errorf("host %s: component %s is of host %s already", h.Name, c, other)
			}
			taken[c.Canonical()] = h.Name
		}
		if _, err := ParseAddress(h.Address); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	return nil
}

// ParseAddress reads the address of a Docker host.
func ParseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	switch {
	case u.RawQuery != "" || u.Fragment != "":
		err = errors.New("it has a query")
	case u.Scheme == "unix" && (u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/"):
		err = errors.New("want unix:///PATH")
	case u.Scheme == "tcp" && (u.Hostname() == "" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || u.User != nil):
		err = errors.New("want tcp://HOST:PORT")
	case u.Scheme == "ssh" && (u.Hostname() == "" || u.User == nil || u.User.Username() == ""):
		err = errors.New("want ssh://USER@HOST")
	case u.Scheme != "unix" && u.Scheme != "tcp" && u.Scheme != "ssh":
		err = errors.New("want unix://, tcp:// or ssh://")
	}
	if err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			err = errors.New("it holds a password: want a key")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", u.Redacted(), err)
	}
	return u, nil
}

// openHost prepares a host. It asks nothing of it.
func (d *Driver) openHost(conf Host) (*host, error) {
	u, err := ParseAddress(conf.Address)
	if err != nil {
		return nil, err
	}
	h := &host{Host: conf, images: map[string]*image{}, time: d.cfg.Clock, adopting: make(chan struct{}, 1)}
	var options []client.Opt
	switch u.Scheme {
	case "unix":
		options = append(options, client.WithHost(conf.Address))
	case "tcp":
		// Whoever reaches the port is root of the host.
		if conf.TLS.Authority == "" || conf.TLS.Certificate == "" || conf.TLS.Key == "" {
			return nil, errors.New("reaching Docker by TCP needs TLS, with an authority, a certificate and a key")
		}
		options = append(options, client.WithHost("tcp://"+u.Host), client.WithTLSClientConfig(conf.TLS.Authority, conf.TLS.Certificate, conf.TLS.Key))
	case "ssh":
		if h.ssh, err = newTunnel(u, conf.SSH); err != nil {
			return nil, err
		}
		options = append(options, client.WithHost("http://docker"), client.WithDialContext(
			func(ctx context.Context, _, _ string) (net.Conn, error) { return h.ssh.dial(ctx) }))
	}
	if h.api, err = client.New(options...); err != nil {
		return nil, err
	}
	if !h.local() {
		h.wires = d.newFarSwitch(h)
		h.machine = &wiring.Machine{Name: conf.Name, Underlay: conf.Underlay, Uplinks: conf.Uplinks,
			Alone: len(d.cfg.Hosts) == 1 && d.cfg.Wires == nil}
	}
	return h, nil
}

func (h *host) close() error {
	err := h.api.Close()
	if h.wires != nil {
		h.wires.Close()
	}
	if h.ssh != nil {
		err = errors.Join(err, h.ssh.close())
	}
	return err
}

// local reports whether the host may be this machine.
func (h *host) local() bool { return strings.HasPrefix(h.Address, "unix:") }

// saw notes how a call to the host went and makes its error one that names the
// host.
func (h *host) saw(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.ill = nil
	case client.IsErrConnectionFailed(err):
		if h.ill == nil {
			h.since = h.time()
		}
		h.ill = err
	}
	if err != nil {
		return fmt.Errorf("on Docker host %s: %w", h.Name, err)
	}
	return nil
}

// serves notes that nodes of a component go to a host that has no list of them.
func (h *host) serves(component urn.URN) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.Components) == 0 && !component.IsZero() && !slices.ContainsFunc(h.served, component.Equal) {
		h.served = append(h.served, component)
	}
}

// Health implements drivers.HealthTeller: hosts that did not answer the last
// call. Of a host without a list of components it tells those that it had nodes
// of.
func (d *Driver) Health() []drivers.Ailing {
	var out []drivers.Ailing
	for _, h := range d.hosts {
		h.mu.Lock()
		if h.ill != nil {
			for _, c := range append(slices.Clone(h.Components), h.served...) {
				out = append(out, drivers.Ailing{Host: c, Since: h.since, Reason: fmt.Sprintf("Docker host %s does not answer: %v", h.Name, h.ill)})
			}
		}
		h.mu.Unlock()
	}
	return out
}

// checkHost sees whether nodes can be made on a host.
func (d *Driver) checkHost(ctx context.Context, h *host) error {
	r, err := h.api.Info(ctx, client.InfoOptions{})
	if err := h.saw(err); err != nil {
		return fmt.Errorf("%w (is dockerd running, and may this user talk to it?)", err)
	}
	if r.Info.OSType != "linux" {
		return fmt.Errorf("its containers are of %s, nodes are of Linux", r.Info.OSType)
	}
	if !slices.ContainsFunc(r.Info.SecurityOptions, func(o string) bool { return strings.HasPrefix(o, "name=seccomp") }) {
		return errors.New("it filters no system calls: experimenters' programs need a kernel and an engine with seccomp")
	}
	if want := architectures[runtime.GOARCH]; !slices.Contains(want, r.Info.Architecture) {
		return fmt.Errorf("its processors are %s, those of this program %s: nodes run this program", r.Info.Architecture, runtime.GOARCH)
	}
	return nil
}

// architectures are the names that Docker has for Go's.
var architectures = map[string][]string{"amd64": {"x86_64", "amd64"}, "arm64": {"aarch64", "arm64"}}

// hostOf finds the Docker host that a component's nodes go to.
func (d *Driver) hostOf(component urn.URN) (*host, error) {
	var rest *host
	for _, h := range d.hosts {
		if slices.ContainsFunc(h.Components, component.Equal) {
			return h, nil
		}
		if len(h.Components) == 0 {
			rest = h
		}
	}
	if rest == nil {
		return nil, fmt.Errorf("no Docker host takes the nodes of %s (name the component in one of docker.hosts)", component)
	}
	return rest, nil
}
