package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"croft/drivers"
	"croft/drivers/internal/nodeinit"
	"croft/drivers/wiring"
	"croft/urn"
)

// Links of a Docker host that is another machine are made by a container of the
// manager's there, which runs this program (wiring.FarStage) in the networks of
// that machine, and goes when nothing is left for it. It needs nothing of the
// machine but its engine: whoever can talk to that is root there anyway.

// kindSwitch is the kind of such containers.
const kindSwitch = "switch"

const (
	switchSocket = "/run/croft-switch/socket"
	// switchPause is between two looks at whether it listens.
	switchPause = 20 * time.Millisecond
)

// switchCapabilities are for networks, and for the networks of containers,
// which are found by their processes.
var switchCapabilities = []string{"NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE", "DAC_OVERRIDE"}

// farSwitch is the Switch of another machine.
type farSwitch struct {
	d *Driver
	h *host
	*wiring.Far
	making chan struct{} // full while the container is made

	mu        sync.Mutex
	connected string // ID of the container that was connected to last
}

func (d *Driver) newFarSwitch(h *host) *farSwitch {
	s := &farSwitch{d: d, h: h, making: make(chan struct{}, 1)}
	s.Far = wiring.NewFar(s.dial, s.alive)
	return s
}

// alive reports whether the container that was connected to last runs.
func (s *farSwitch) alive(ctx context.Context) bool {
	id, running, err := s.find(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && running && id == s.connected
}

func (d *Driver) switchName() string { return "croft-" + d.scope + "-switch" }

// find returns the container's ID and whether it runs; "" if there is none.
func (s *farSwitch) find(ctx context.Context) (id string, running bool, err error) {
	list, err := s.h.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: s.d.ours(kindSwitch)})
	if err := s.h.saw(err); err != nil {
		return "", false, err
	}
	for _, c := range list.Items {
		return c.ID, c.State == container.StateRunning, nil
	}
	return "", false, nil
}

// dial connects to the process in the container, which it makes if need be.
func (s *farSwitch) dial(ctx context.Context) (net.Conn, error) {
	id, err := s.ensure(ctx)
	if err != nil {
		return nil, err
	}
	for {
		c, err := s.d.join(ctx, &node{host: s.h, id: id}, "unix", switchSocket)
		if err == nil {
			s.mu.Lock()
			s.connected = id
			s.mu.Unlock()
			return c, nil
		}
		if _, running, findErr := s.find(ctx); findErr != nil || !running {
			return nil, errors.Join(err, findErr, s.lastWords(context.WithoutCancel(ctx), id))
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(switchPause):
		}
	}
}

func (s *farSwitch) lastWords(ctx context.Context, id string) error {
	if words := s.d.lastWords(ctx, &node{host: s.h, id: id}); words != "" {
		return errors.New("it said" + words)
	}
	return nil
}

// ensure makes the container, and what of it runs no more anew.
func (s *farSwitch) ensure(ctx context.Context) (id string, err error) {
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	id, running, err := s.find(ctx)
	if err != nil || running {
		return id, err
	}
	if id != "" {
		if err := s.h.discard(ctx, id); err != nil {
			return "", err
		}
	}
	image, err := s.image(ctx)
	if err != nil {
		return "", err
	}
	s.h.shared.RLock()
	defer s.h.shared.RUnlock()
	volume, err := s.d.place(ctx, s.h, image)
	if err != nil {
		return "", err
	}
	id, err = s.d.create(ctx, s.h, client.ContainerCreateOptions{
		Name: s.d.switchName(),
		Config: &container.Config{
			Image: image, User: "0", WorkingDir: "/", Labels: s.d.labels(kindSwitch),
			Entrypoint:  nodeinit.Command(len(s.d.program.Libraries) > 0, wiring.FarStage, switchSocket),
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		HostConfig: &container.HostConfig{
			NetworkMode: "host", PidMode: "host", UsernsMode: "host", CgroupnsMode: container.CgroupnsModeHost, LogConfig: logs,
			CapDrop: []string{"ALL"}, CapAdd: switchCapabilities, ReadonlyRootfs: true,
			SecurityOpt: []string{"apparmor=unconfined", "seccomp=unconfined", "label=disable", "no-new-privileges:true"},
			Tmpfs:       map[string]string{"/run": "rw,nosuid,nodev,noexec,mode=700"},
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: nodeinit.BinaryDir, ReadOnly: true,
				VolumeOptions: &mount.VolumeOptions{NoCopy: true}}},
		},
	})
	if err == nil {
		_, err = s.h.api.ContainerStart(ctx, id, client.ContainerStartOptions{})
		err = s.h.saw(err)
	}
	if err != nil {
		return "", fmt.Errorf("start the switch: %w", err)
	}
	return id, nil
}

// image finds an image of the manager's on the host: any will do, for a
// container cannot be without.
func (s *farSwitch) image(ctx context.Context) (string, error) {
	nodes, err := s.d.list(ctx, s.h, nil)
	if err != nil {
		return "", err
	}
	for _, n := range nodes {
		return n.image, nil
	}
	list, err := s.h.api.ImageList(ctx, client.ImageListOptions{})
	if err := s.h.saw(err); err != nil {
		return "", err
	}
	for _, i := range list.Items {
		return i.ID, nil
	}
	return "", fmt.Errorf("on Docker host %s: there is no image, and so no container to make links", s.h.Name)
}

// idle removes the container if there is nothing for it to do.
func (s *farSwitch) idle(ctx context.Context) error {
	id, running, err := s.find(ctx)
	if err != nil || id == "" {
		return err
	}
	nodes, err := s.d.list(ctx, s.h, nil)
	if err != nil || len(nodes) > 0 {
		return err
	}
	if running {
		links, err := s.Links(ctx)
		if err != nil || len(links) > 0 {
			return err
		}
	}
	s.Far.Close()
	return s.d.end(ctx, s.h, ending{Host: s.h.Name, ID: id, Remove: true}, 0)
}

// list is Links without making a container for it.
func (s *farSwitch) list(ctx context.Context) ([]wiring.Link, error) {
	_, running, err := s.find(ctx)
	if err != nil || !running {
		return nil, err
	}
	return s.Links(ctx)
}

// forget is Unplug, and disconnect Disconnect, without making a container.
func (s *farSwitch) forget(ctx context.Context, sliver urn.URN) error {
	_, running, err := s.find(ctx)
	if err != nil || !running {
		return err
	}
	return s.Unplug(ctx, sliver)
}

func (s *farSwitch) disconnect(ctx context.Context, link urn.URN) error {
	_, running, err := s.find(ctx)
	if err != nil || !running {
		return err
	}
	if err := s.Disconnect(ctx, link); err != nil {
		return err
	}
	return s.idle(ctx)
}

// pid is that of the process of a container that runs.
func (n *node) pid(ctx context.Context) (int, error) {
	r, err := n.host.api.ContainerInspect(ctx, n.id, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return 0, drivers.ErrNotRunning
	}
	if err := n.host.saw(err); err != nil {
		return 0, err
	}
	if r.Container.State == nil || !r.Container.State.Running || r.Container.State.Pid <= 0 {
		return 0, drivers.ErrNotRunning
	}
	return r.Container.State.Pid, nil
}

// network opens the network of a container that runs on this machine.
func (n *node) network(ctx context.Context) (*os.File, error) {
	pid, err := n.pid(ctx)
	if err != nil {
		return nil, err
	}
	return networkOf(pid, n.id)
}
