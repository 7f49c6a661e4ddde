package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"croft/drivers"
	"croft/urn"
)

// Labels of what the driver makes on Docker hosts.
const (
	labelManager = "croft.manager" // URN of the manager
	labelKind    = "croft.kind"    // kindNode or kindScratch
	labelSliver  = "croft.sliver"  // URN, canonical
	labelSlice   = "croft.slice"   // URN
	labelNode    = "croft.node"    // a record, in JSON
)

const (
	kindNode    = "node"
	kindScratch = "scratch" // lives as long as one operation, and is never started
)

// making begins the names of containers that are not whole yet.
const making = "making-"

// record is what a node was made of.
type record struct {
	Node    drivers.Node `json:"node"`     // without its users
	HostKey string       `json:"host_key"` // public, as in authorized_keys
}

// node is a container of the manager's, as its host has it now.
type node struct {
	host    *host
	id      string
	image   string // ID
	name    string
	rec     record
	whole   bool
	running bool
}

// containerName names the container of a node: for people, who look for its
// host name, and apart from all others.
func (d *Driver) containerName(n drivers.Node) string {
	sum := sha256.Sum256([]byte(n.Sliver.Canonical().String()))
	return fmt.Sprintf("croft-%s-%s-%s", d.scope, strings.ToLower(n.Hostname), hex.EncodeToString(sum[:5]))
}

// labels are of all that is of this manager and of a kind.
func (d *Driver) labels(kind string) map[string]string {
	return map[string]string{labelManager: d.cfg.Manager.String(), labelKind: kind}
}

// ours selects what is of this manager and of a kind.
func (d *Driver) ours(kind string) client.Filters {
	return make(client.Filters).Add("label", labelManager+"="+d.cfg.Manager.String(), labelKind+"="+kind)
}

// nodes lists the nodes on a host, all or those of one sliver. A host that has
// not answered before is taken over first.
func (d *Driver) nodes(ctx context.Context, h *host, sliver *urn.URN) ([]*node, error) {
	if err := d.adopt(ctx, h); err != nil {
		return nil, err
	}
	return d.list(ctx, h, sliver)
}

func (d *Driver) list(ctx context.Context, h *host, sliver *urn.URN) ([]*node, error) {
	filters := d.ours(kindNode)
	if sliver != nil {
		filters.Add("label", labelSliver+"="+sliver.Canonical().String())
	}
	list, err := h.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err := h.saw(err); err != nil {
		return nil, err
	}
	var out []*node
	for _, c := range list.Items {
		n, err := d.nodeOf(h, c)
		if err != nil {
			return nil, err
		}
		h.serves(n.rec.Node.Host)
		out = append(out, n)
	}
	return out, nil
}

func (d *Driver) nodeOf(h *host, c container.Summary) (*node, error) {
	n := &node{host: h, id: c.ID, image: c.ImageID, running: c.State == container.StateRunning}
	if len(c.Names) > 0 {
		n.name = strings.TrimPrefix(c.Names[0], "/")
	}
	if err := json.Unmarshal([]byte(c.Labels[labelNode]), &n.rec); err != nil {
		return nil, fmt.Errorf("on Docker host %s: container %s: label %s: %w (remove the container by hand)", h.Name, n.name, labelNode, err)
	}
	n.whole = n.name == d.containerName(n.rec.Node) && c.State != container.StateDead && c.State != container.StateRemoving
	return n, nil
}

// find finds a node, whole or not: where it was last, then everywhere.
func (d *Driver) find(ctx context.Context, sliver urn.URN) (*node, error) {
	key := sliver.Canonical()
	d.mu.Lock()
	last := d.where[key]
	d.mu.Unlock()
	hosts := d.hosts
	if last != nil {
		hosts = append([]*host{last}, hosts...)
	}
	var errs []error
	for i, h := range hosts {
		if i > 0 && h == last {
			continue
		}
		found, err := d.nodes(ctx, h, &sliver)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if len(found) > 0 {
			d.mu.Lock()
			d.where[key] = h
			d.mu.Unlock()
			return found[0], nil
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("look for node %s: %w", sliver, err)
	}
	d.mu.Lock()
	delete(d.where, key)
	d.mu.Unlock()
	return nil, fmt.Errorf("node %s: %w", sliver, drivers.ErrNotFound)
}

// whole finds a node for an operation that needs it whole.
func (d *Driver) whole(ctx context.Context, sliver urn.URN) (*node, error) {
	n, err := d.find(ctx, sliver)
	if err == nil && !n.whole {
		return nil, fmt.Errorf("node %s is half-made (remove it and make it again)", sliver)
	}
	return n, err
}
