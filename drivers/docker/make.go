package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"golang.org/x/crypto/ssh"

	"croft/capacity"
	"croft/drivers"
	"croft/drivers/internal/control"
	"croft/drivers/internal/nodecheck"
	"croft/drivers/internal/nodeinit"
	"croft/request"
)

// capabilities are all that programs in a node can have: those that the root
// of a machine needs for files, accounts, processes, services and its own
// networks. Not among them is what acts on the host: mounting, devices, the
// clock, modules, tracing.
var capabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP", "SYS_CHROOT", // files
	"SETUID", "SETGID", "SETPCAP", "AUDIT_WRITE", // accounts
	"KILL",
	"NET_BIND_SERVICE", "NET_RAW", "NET_ADMIN", // of the container's own network only
}

// settings are of the container's network. Nobody can set them from inside.
// The engine refuses those that its kernel lacks.
func settings(ipv6 bool) map[string]string {
	out := map[string]string{
		"net.ipv4.ping_group_range":           "0 65535", // ping without being root
		"net.ipv4.ip_unprivileged_port_start": "1024",
		"net.ipv4.ip_forward":                 "1", // a node may be a router of its experiment
	}
	if ipv6 {
		out["net.ipv6.conf.all.forwarding"] = "1"
		out["net.ipv6.conf.all.disable_ipv6"] = "0"
		out["net.ipv6.conf.default.disable_ipv6"] = "0"
	}
	return out
}

// hasIPv6 reports whether a host's kernel has IPv6, as all have that nobody has
// told otherwise.
func (h *host) hasIPv6() bool {
	if !h.local() {
		return true
	}
	_, err := os.Stat("/proc/sys/net/ipv6")
	return err == nil
}

// logs bounds what the host keeps of a node's console.
var logs = container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m", "max-file": "2"}}

// sizedStorage are the storage drivers that can bound a container's disk.
// overlay2 can on some file systems, which is seen when it refuses.
var sizedStorage = map[string]bool{"btrfs": true, "zfs": true, "overlay2": true}

// Make implements drivers.Driver.
func (d *Driver) Make(ctx context.Context, want drivers.Node) error {
	if err := d.makeNode(ctx, want); err != nil {
		return fmt.Errorf("make node %s: %w", want.Sliver, err)
	}
	return nil
}

func (d *Driver) makeNode(ctx context.Context, want drivers.Node) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.wires.Has(want.Sliver) {
		return errors.New("there is a link of that name")
	}
	h, err := d.hostOf(want.Host)
	if err != nil {
		return err
	}
	h.serves(want.Host)
	img, err := d.pulled(ctx, h, want.Image)
	if err != nil {
		return err
	}
	ctx, cancel := brief(ctx)
	defer cancel()
	if err := nodecheck.Node(want, img.accounts); err != nil {
		return err
	}
	old, err := d.nodes(ctx, h, &want.Sliver)
	if err != nil {
		return err
	}
	for _, n := range old {
		if n.whole {
			return nil
		}
		if err := d.removeNode(ctx, n); err != nil {
			return fmt.Errorf("remove what was half-made: %w", err)
		}
	}
	h.shared.RLock()
	defer h.shared.RUnlock()
	volume, err := d.place(ctx, h, img.id)
	if err != nil {
		return err
	}
	if err := d.createNode(ctx, h, want, img, volume); err != nil {
		return err
	}
	d.mu.Lock()
	d.where[want.Sliver.Canonical()] = h
	d.mu.Unlock()
	return nil
}

func (d *Driver) createNode(ctx context.Context, h *host, want drivers.Node, img *image, volume string) (err error) {
	_, private, err := ed25519.GenerateKey(d.cfg.Rand)
	if err != nil {
		return fmt.Errorf("make its host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, want.Hostname)
	if err != nil {
		return fmt.Errorf("make its host key: %w", err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return fmt.Errorf("make its host key: %w", err)
	}
	rec := record{Node: want, HostKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))}
	rec.Node.Users = nil
	conf, err := d.describe(h, rec, img, volume)
	if err != nil {
		return err
	}
	if err := d.limitDisk(ctx, h, &conf, want.Capacity); err != nil {
		return err
	}
	id, err := d.create(ctx, h, conf)
	if err != nil && conf.HostConfig.StorageOpt != nil && strings.Contains(err.Error(), "storage-opt") {
		d.log.Warn("this Docker host cannot limit the disks of nodes", "host", h.Name, "reason", err)
		h.mu.Lock()
		h.unsized = true
		h.mu.Unlock()
		conf.HostConfig.StorageOpt = nil
		id, err = d.create(ctx, h, conf)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.discard(context.WithoutCancel(ctx), id))
		}
	}()
	init := nodeinit.Config{
		Sliver: want.Sliver.String(), Hostname: want.Hostname, HostKey: pem.EncodeToMemory(block),
		Libraries: d.program.Libraries, Environment: img.env, OpenSSH: true,
	}
	if err := h.write(ctx, id, nodeinit.ContainerConfig, init); err != nil {
		return err
	}
	if err := h.write(ctx, id, nodeinit.ContainerAccounts, control.Accounts(want.Users)); err != nil {
		return err
	}
	_, err = h.api.ContainerRename(ctx, id, client.ContainerRenameOptions{NewName: d.containerName(want)})
	return h.saw(err)
}

// describe says how the container of a node is to be.
func (d *Driver) describe(h *host, rec record, img *image, volume string) (client.ContainerCreateOptions, error) {
	label, err := json.Marshal(rec)
	if err != nil {
		return client.ContainerCreateOptions{}, fmt.Errorf("write its record: %w", err)
	}
	n := rec.Node
	conf := client.ContainerCreateOptions{
		Name: making + d.containerName(n),
		Config: &container.Config{
			Image: img.id, Hostname: n.Hostname, User: "0", WorkingDir: "/", StopSignal: "SIGTERM",
			Entrypoint:  nodeinit.Command(len(d.program.Libraries) > 0, nodeinit.StageContainer),
			Env:         []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "GODEBUG=netdns=go", "GOMAXPROCS=1", "GOGC=50"},
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
			Labels: map[string]string{
				labelManager: d.cfg.Manager.String(), labelKind: kindNode, labelSliver: n.Sliver.Canonical().String(),
				labelSlice: n.Slice.String(), labelNode: string(label),
			},
		},
		HostConfig: &container.HostConfig{
			NetworkMode: "none", IpcMode: container.IPCModePrivate, CgroupnsMode: container.CgroupnsModePrivate,
			CapDrop: []string{"ALL"}, CapAdd: capabilities, Sysctls: settings(h.hasIPv6()), LogConfig: logs,
			ExtraHosts: []string{n.Hostname + ":127.0.1.1"},
			Tmpfs:      map[string]string{"/run": "rw,nosuid,nodev,exec,mode=755"},
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: nodeinit.BinaryDir, ReadOnly: true,
				VolumeOptions: &mount.VolumeOptions{NoCopy: true}}},
			Resources: container.Resources{PidsLimit: &d.cfg.Processes},
		},
	}
	if !img.sudo {
		conf.HostConfig.SecurityOpt = []string{"no-new-privileges:true"}
	}
	limit(&conf.HostConfig.Resources, n.Capacity)
	return conf, nil
}

// leastMemory is below what Docker gives to a container.
const leastMemory = 16 << 20

// limit bounds memory, of which swap is a part, and cores.
func limit(r *container.Resources, a capacity.Amount) {
	if a.Memory > 0 {
		r.Memory = max(leastMemory, int64(a.Memory)<<20)
		r.MemorySwap = r.Memory
	}
	if a.Cores > 0 {
		// Not NanoCPUs: Docker refuses more of them than its machine has.
		const period = 100_000 // µs
		r.CPUPeriod, r.CPUQuota = period, max(1000, int64(a.Cores)*period/int64(capacity.Core))
	}
}

func (d *Driver) limitDisk(ctx context.Context, h *host, conf *client.ContainerCreateOptions, a capacity.Amount) error {
	h.mu.Lock()
	unsized := h.unsized
	h.mu.Unlock()
	if a.Disk == 0 || unsized {
		return nil
	}
	r, err := h.api.Info(ctx, client.InfoOptions{})
	if err := h.saw(err); err != nil {
		return err
	}
	if sizedStorage[r.Info.Driver] {
		conf.HostConfig.StorageOpt = map[string]string{"size": fmt.Sprintf("%dM", a.Disk)}
	}
	return nil
}

// write puts a file that is root's alone into a container, running or not.
func (h *host) write(ctx context.Context, id, name string, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	dir, base := path.Split(strings.TrimPrefix(name, "/"))
	err = errors.Join(
		out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o700}),
		out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dir + base, Mode: 0o600, Size: int64(len(data))}))
	if err == nil {
		_, err = out.Write(data)
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = h.api.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: "/", Content: &archive})
	if err := h.saw(err); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (d *Driver) updateUsers(ctx context.Context, n *node, users []request.User) error {
	img, err := d.image(ctx, n.host, n.image)
	if err != nil {
		return err
	}
	if err := nodecheck.Users(users, img.accounts); err != nil {
		return err
	}
	if err := n.host.write(ctx, n.id, nodeinit.ContainerAccounts, control.Accounts(users)); err != nil {
		return err
	}
	if !n.running {
		return nil
	}
	// A node may not answer, for its root is its users'.
	ctx, cancel := context.WithTimeout(ctx, accountsTime)
	defer cancel()
	conn, err := d.control(ctx, n)
	if err != nil {
		return err
	}
	defer conn.Close()
	return control.SetAccounts(ctx, conn, users)
}

// removeNode removes a node, whole or not, and then what no node needs.
func (d *Driver) removeNode(ctx context.Context, n *node) error {
	if err := d.unplug(ctx, n); err != nil {
		return err
	}
	if err := d.end(ctx, n.host, ending{Host: n.host.Name, ID: n.id, Remove: true}, 0); err != nil {
		return err
	}
	d.mu.Lock()
	delete(d.where, n.rec.Node.Sliver.Canonical())
	d.mu.Unlock()
	if n.host.wires != nil {
		if err := n.host.wires.idle(ctx); err != nil {
			return err
		}
	}
	return d.sweep(ctx, n.host)
}
