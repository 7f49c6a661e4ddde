package ssh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"croft/drivers/power"
	"croft/urn"
)

// board opens the way to a machine's board management.
func (d *Driver) board(m Machine) (power.Controller, error) {
	if m.Power == nil {
		return nil, fmt.Errorf("machine %s has no power declared", m.Name)
	}
	c, err := d.c.Power(*m.Power)
	if err != nil {
		return nil, fmt.Errorf("power of %s: %w", m.Name, err)
	}
	return c, nil
}

// powered makes sure that a machine answers: one that is off is turned on,
// where that can be done.
func (d *Driver) powered(ctx context.Context, sliver urn.URN, m Machine) error {
	_, err := d.look(ctx, m)
	var key *HostKeyError
	if err == nil || m.Power == nil || errors.As(err, &key) || ctx.Err() != nil {
		return err
	}
	board, boardErr := d.board(m)
	if boardErr != nil {
		return errors.Join(err, boardErr)
	}
	defer board.Close()
	on, boardErr := board.On(ctx)
	if boardErr != nil {
		return errors.Join(err, fmt.Errorf("power of %s: %w", m.Name, boardErr))
	}
	if !on {
		d.note(sliver, "turning %s on", m.Name)
		if err := board.Do(ctx, power.TurnOn); err != nil {
			return fmt.Errorf("power of %s: %w", m.Name, err)
		}
	}
	return d.waitFor(ctx, m, m.BootLimit, "answers after it was turned on", func(seen) bool { return true })
}

// turnOff lets a machine go down, and takes its power if it does not.
func (d *Driver) turnOff(ctx context.Context, sliver urn.URN, m Machine) error {
	board, err := d.board(m)
	if err != nil {
		return err
	}
	defer board.Close()
	on, err := board.On(ctx)
	if err != nil {
		return fmt.Errorf("power of %s: %w", m.Name, err)
	}
	if !on {
		return nil
	}
	if _, err := d.do(ctx, m, "", "poweroff"); err != nil {
		d.note(sliver, "it does not go down by itself: %v", err)
	} else if err := d.waitOff(ctx, m, board); err == nil || ctx.Err() != nil {
		return err
	}
	d.note(sliver, "turning %s off", m.Name)
	if err := board.Do(ctx, power.TurnOff); err != nil {
		return fmt.Errorf("power of %s: %w", m.Name, err)
	}
	return d.waitOff(ctx, m, board)
}

// waitOff waits until the board says that the machine is off.
func (d *Driver) waitOff(ctx context.Context, m Machine, board power.Controller) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.c.SoftLimit, fmt.Errorf("machine %s is not off after %s", m.Name, d.c.SoftLimit))
	defer cancel()
	defer d.disconnect(m)
	for {
		on, err := board.On(ctx)
		if err == nil && !on {
			return nil
		}
		timer := time.NewTimer(d.c.Poll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// reboot boots a machine: by its own system if it answers and does as it is
// told, else by power where that is declared.
func (d *Driver) reboot(ctx context.Context, sliver urn.URN, m Machine) error {
	before, err := d.look(ctx, m)
	if err == nil {
		if _, err = d.do(ctx, m, "", "reboot"); err == nil {
			limit := m.BootLimit
			if m.Power != nil {
				limit = min(limit, d.c.SoftLimit)
			}
			d.disconnect(m)
			err = d.waitFor(ctx, m, limit, "boots anew", func(s seen) bool { return s.boot != before.boot })
		}
	}
	if err == nil || m.Power == nil || ctx.Err() != nil {
		return err
	}
	d.note(sliver, "restarting %s by power: %v", m.Name, err)
	return d.cycle(ctx, m, before.boot, false)
}

// cycle boots a machine by power, from its network if wished, and waits for it.
func (d *Driver) cycle(ctx context.Context, m Machine, before string, network bool) error {
	board, err := d.board(m)
	if err != nil {
		return err
	}
	defer board.Close()
	if network {
		if err := board.BootFromNetwork(ctx); err != nil {
			return fmt.Errorf("power of %s: network boot: %w", m.Name, err)
		}
	}
	on, err := board.On(ctx)
	if err != nil {
		return fmt.Errorf("power of %s: %w", m.Name, err)
	}
	action := power.TurnOn
	if on {
		action = power.Cycle
	}
	if err := board.Do(ctx, action); err != nil {
		return fmt.Errorf("power of %s: %w", m.Name, err)
	}
	d.disconnect(m)
	return d.waitFor(ctx, m, m.BootLimit, "boots anew after its power was cycled", func(s seen) bool { return s.boot != before })
}
