package ssh

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"croft/urn"
)

// reimage has a machine's system made anew by the operator's command, and
// waits until the machine answers and bears no mark of a node.
func (d *Driver) reimage(ctx context.Context, m Machine, sliver, slice urn.URN, image string) error {
	before, _ := d.look(ctx, m) // it need not answer
	d.disconnect(m)
	env := []string{
		"CROFT_HOST=" + m.Name, "CROFT_HOST_URN=" + m.Host.String(), "CROFT_ADDRESS=" + m.Address, "CROFT_PORT=" + strconv.Itoa(m.Port),
		"CROFT_IMAGE=" + image, "CROFT_SLIVER=" + sliver.String(), "CROFT_SLICE=" + slice.String(), "CROFT_MACS=" + m.macs(),
	}
	d.note(sliver, "making %s anew, image %q", m.Name, image)
	if err := d.run(ctx, sliver, m.Reimage.Limit, m.Reimage.Command, env); err != nil {
		return fmt.Errorf("making machine %s anew: %w", m.Name, err)
	}
	if m.Reimage.PXE {
		if err := d.cycle(ctx, m, before.boot, true); err != nil {
			return fmt.Errorf("making machine %s anew: %w", m.Name, err)
		}
	}
	d.disconnect(m)
	err := d.waitFor(ctx, m, m.BootLimit, "answers without a mark of its last node", func(s seen) bool { return s.owner == "" })
	if err != nil {
		return fmt.Errorf("making machine %s anew: %w", m.Name, err)
	}
	return d.journal.setImage(&m, image)
}

// macs are the hardware addresses of a machine that are declared.
func (m *Machine) macs() string {
	var list []string
	for _, i := range m.Interfaces {
		if i.MAC != "" {
			list = append(list, i.MAC)
		}
	}
	return strings.Join(list, " ")
}
