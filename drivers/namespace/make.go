package namespace

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"croft/drivers"
	"croft/urn"
)

// Make implements drivers.Driver.
func (d *Driver) Make(ctx context.Context, want drivers.Node) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("make node %s: %w", want.Sliver, err)
	}
	if err := d.makeNode(want); err != nil {
		return fmt.Errorf("make node %s: %w", want.Sliver, err)
	}
	return nil
}

func (d *Driver) makeNode(want drivers.Node) error {
	if err := d.checkNode(want); err != nil {
		return err
	}
	overlays, _, err := d.image(want.Image)
	if err != nil {
		return err
	}
	n, err := d.claim(want)
	if err != nil {
		return err
	}
	defer n.op.Unlock()
	if n.rec.Whole {
		return nil
	}
	if err := d.writeNode(n, overlays); err != nil {
		return errors.Join(err, d.erase(n, want.Sliver.Canonical()))
	}
	return nil
}

// claim finds the node or gives it a slot, and locks it.
func (d *Driver) claim(want drivers.Node) (*node, error) {
	key := want.Sliver.Canonical()
	for {
		if d.wires.Has(key) {
			return nil, errors.New("there is a link of that name")
		}
		d.mu.Lock()
		n := d.nodes[key]
		if n == nil {
			slot, err := d.freeNodeSlot()
			if err == nil {
				n = &node{slot: slot, rec: nodeRecord{Slot: slot, Node: want}}
				n.op.Lock()
				d.nodes[key] = n
			}
			d.mu.Unlock()
			return n, err
		}
		d.mu.Unlock()
		n.op.Lock()
		d.mu.Lock()
		if d.nodes[key] == n {
			if !n.rec.Whole {
				n.rec.Node = want
			}
			d.mu.Unlock()
			return n, nil
		}
		d.mu.Unlock()
		n.op.Unlock()
	}
}

func (d *Driver) writeNode(n *node, overlays []overlay) error {
	dir := d.state.nodeDir(n.slot)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make its directory: %w", err)
	}
	if err := d.state.putNode(n.rec); err != nil {
		return err
	}
	_, private, err := ed25519.GenerateKey(d.cfg.Rand)
	if err != nil {
		return fmt.Errorf("make its host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, n.rec.Node.Hostname)
	if err != nil {
		return fmt.Errorf("make its host key: %w", err)
	}
	missing, err := d.makeVolume(n.slot, n.rec.Node.Capacity.Disk)
	if err != nil {
		return err
	}
	if missing != "" {
		d.note(n, "its disk has no limit of its own: %s", missing)
	}
	if err := makeDisk(filepath.Join(dir, "disk"), overlays, d.owner(n.slot)); err != nil {
		return err
	}
	return d.change(n, func(r *nodeRecord) {
		r.Whole, r.HostKey = true, pem.EncodeToMemory(block)
	})
}

// change changes the record of a node whose lock is held, on disk and then
// for everybody.
func (d *Driver) change(n *node, f func(*nodeRecord)) error {
	rec := n.rec
	f(&rec)
	if err := d.state.putNode(rec); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n.rec = rec
	return nil
}

// owner is the id on the host of a node's root.
func (d *Driver) owner(slot int) int { return int(d.cfg.IDs.First) + slot*idsPerNode }

// freeNodeSlot is called with mu held.
func (d *Driver) freeNodeSlot() (int, error) {
	taken := map[int]bool{}
	for _, n := range d.nodes {
		taken[n.slot] = true
	}
	usable := max(1, d.cfg.IDs.Nodes-checkSlots)
	for slot := range usable {
		if !taken[slot] {
			return slot, nil
		}
	}
	return 0, fmt.Errorf("all %d ranges of user ids are taken (remove nodes, or give the driver more ids)", usable)
}

// erase removes a node in whatever state it is. Its lock is held.
func (d *Driver) erase(n *node, key urn.URN) error {
	d.mu.Lock()
	gone := d.nodes[key] != n
	d.mu.Unlock()
	if gone {
		return nil
	}
	dir := d.state.nodeDir(n.slot)
	if _, err := os.Stat(dir); err == nil {
		if err := d.change(n, func(r *nodeRecord) { r.Whole = false }); err != nil {
			return err
		}
	}
	if err := d.stop(context.Background(), n, 0); err != nil {
		return err
	}
	if err := d.discard(n.slot); err != nil {
		return err
	}
	d.mu.Lock()
	delete(d.nodes, key)
	d.mu.Unlock()
	d.tidy()
	return nil
}

// tidy removes what belongs to no node when there is none any more.
func (d *Driver) tidy() {
	d.mu.Lock()
	nodes := len(d.nodes)
	d.mu.Unlock()
	if nodes == 0 && len(d.wires.Links()) == 0 {
		d.cgroups.removeAll()
	}
}
