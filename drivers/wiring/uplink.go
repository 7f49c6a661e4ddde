package wiring

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Frames of a link leave by an uplink, an interface of the machine, with a VLAN
// tag. Between the bridge in the switch and the uplink is a veth pair, of which
// one end lies in the network of the machine:
//
//	bridge — pl7 ═ croft120.3 → (tag) → uplink
//	bridge — pl7 ═ croft120.3 ← (untag, if the tag is 120) ← uplink
//
// Two eBPF programs move the frames, so that nothing of the machine sees them,
// and no kernel module for VLANs is needed. They are filters at the interfaces,
// which outlive the manager.

const (
	// etherVLAN is the type of tagged frames (802.1Q), in network order.
	etherVLAN = 0x0081
	// filterPriority is that of the uplinks' filters, one for each tag.
	filterPriority = 7
	// Offsets in struct __sk_buff (linux/bpf.h).
	skbVLANPresent, skbVLANTag = 20, 24
	// Answers of filters (linux/pkt_cls.h).
	actNext, actDrop = -1, 2

	noAddresses = 1 // IN6_ADDR_GEN_MODE_NONE
)

// tagging gives all frames a tag and sends them out of an uplink.
func tagging(tag, uplink int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R2, etherVLAN),
		asm.Mov.Imm(asm.R3, int32(tag)),
		asm.FnSkbVlanPush.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R1, int32(uplink)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, actDrop).WithSymbol("drop"),
		asm.Return(),
	}
}

// untagging takes the frames with a tag off an uplink, and the tag off them.
func untagging(tag, to int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, skbVLANPresent, asm.Word),
		asm.JEq.Imm(asm.R2, 0, "next"),
		asm.LoadMem(asm.R2, asm.R6, skbVLANTag, asm.Word),
		asm.And.Imm(asm.R2, 0xfff),
		asm.JNE.Imm(asm.R2, int32(tag), "next"),
		asm.FnSkbVlanPop.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, actNext).WithSymbol("next"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, actDrop).WithSymbol("drop"),
		asm.Return(),
	}
}

// outerName names the end of a trunk that lies in the machine's network.
func outerName(uplink, tag int) string { return fmt.Sprintf("croft%d.%d", tag, uplink) }

// addTrunk joins a bridge to an uplink with a tag. netMu is held.
func (s *Switch) addTrunk(name, bridge, uplink string, tag int) error {
	fail := func(err error) error { return fmt.Errorf("join VLAN %d of %s: %w", tag, uplink, err) }
	h, err := s.outside()
	if err != nil {
		return err
	}
	defer h.Close()
	up, err := h.LinkByName(uplink)
	if err != nil {
		return fail(err)
	}
	outer := outerName(up.Attrs().Index, tag)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = outer, frameMTU
	err = h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name, PeerMTU: frameMTU, PeerNamespace: netlink.NsFd(int(s.fabric.ns))})
	if errors.Is(err, unix.EEXIST) {
		if _, own := s.fabric.handle.LinkByName(name); own != nil {
			return fail(errors.New("the tag is in use on this machine, by another link or shared VLAN"))
		}
		err = nil
	}
	if err == nil {
		err = setTrunk(h, up, outer, tag)
	}
	var inner netlink.Link
	if err == nil {
		inner, err = s.fabric.handle.LinkByName(name)
	}
	var index int
	if err == nil {
		index, err = s.fabric.bridge(bridge)
	}
	if err == nil {
		err = s.fabric.handle.LinkSetMasterByIndex(inner, index)
	}
	if err == nil {
		err = s.fabric.handle.LinkSetUp(inner)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// setTrunk has the kernel move frames between an uplink and the outer end of a
// trunk, which comes up when nothing else can happen to what it gets.
func setTrunk(h *netlink.Handle, up netlink.Link, outer string, tag int) error {
	end, err := h.LinkByName(outer)
	if err != nil {
		return err
	}
	if err := h.LinkSetIP6AddrGenMode(end, noAddresses); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
		return err
	}
	out, back := up.Attrs().Index, end.Attrs().Index
	if err := attach(h, back, 1, "croft tag", tagging(tag, out)); err != nil {
		return err
	}
	if err := attach(h, out, tag, "croft untag", untagging(tag, back)); err != nil {
		return err
	}
	// Nodes have addresses that the interface does not know.
	if err := h.SetPromiscOn(up); err != nil {
		return err
	}
	if up.Attrs().Flags&net.FlagUp == 0 {
		if err := h.LinkSetUp(up); err != nil {
			return err
		}
	}
	return h.LinkSetUp(end)
}

// attach has a program look at what comes in by an interface.
func attach(h *netlink.Handle, index, handle int, name string, code asm.Instructions) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("lock memory for a program: %w", err)
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: code, License: "Apache-2.0"})
	if err != nil {
		return fmt.Errorf("load a program into the kernel: %w", err)
	}
	defer p.Close()
	hook := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	if err := h.QdiscAdd(hook); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("look at what comes in: %w", err)
	}
	f := filterOf(index, handle)
	f.Fd, f.Name, f.DirectAction = p.FD(), name, true
	if err := h.FilterReplace(f); err != nil {
		return fmt.Errorf("look at what comes in: %w", err)
	}
	return nil
}

func filterOf(index, handle int) *netlink.BpfFilter {
	return &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{
		LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: uint32(handle), Protocol: unix.ETH_P_ALL, Priority: filterPriority,
	}}
}

// removeTrunk takes a tag off an uplink. What may be gone already is no error.
func (s *Switch) removeTrunk(uplink string, tag int) error {
	h, err := s.outside()
	if err != nil {
		return err
	}
	defer h.Close()
	up, err := h.LinkByName(uplink)
	if isGone(err) {
		return nil
	}
	if err == nil {
		err = h.FilterDel(filterOf(up.Attrs().Index, tag))
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) { // no such filter, or no filters at all
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("leave VLAN %d of %s: %w", tag, uplink, err)
	}
	return nil
}
