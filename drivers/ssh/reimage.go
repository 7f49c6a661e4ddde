package ssh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

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

// run runs a command of the operator's on the manager's machine. What it says
// goes to the node's log. It and its children end with the context or the
// limit.
func (d *Driver) run(ctx context.Context, sliver urn.URN, limit time.Duration, command, env []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s has not ended after %s", command[0], limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	var last string
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		lines := bufio.NewReaderSize(read, 4096)
		for {
			line, _, err := lines.ReadLine()
			if len(line) > 0 {
				last = string(line)
				d.note(sliver, "%s: %s", command[0], line)
			}
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Run()
	write.Close()
	<-logged
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if last != "" {
		err = errors.Join(err, errors.New("it said at last: "+last))
	}
	return fmt.Errorf("%s: %w", command[0], err)
}
