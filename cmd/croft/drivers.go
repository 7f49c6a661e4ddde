package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"croft/drivers"
	"croft/drivers/docker"
	"croft/drivers/namespace"
	"croft/drivers/simulated"
	"croft/drivers/ssh"
	"croft/drivers/wiring"
	"croft/internal/config"
	"croft/inventory"
	"croft/slivers"
)

// driverNames are the drivers that this program has.
var driverNames = []string{"docker", "namespace", "simulated", "ssh"}

// driversOf lists the drivers that the hosts of an inventory need, and those of
// slivers that are there already.
func driversOf(s *inventory.Snapshot, held []slivers.Sliver) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, t := range s.Offered() {
		add(t.Driver)
	}
	for _, v := range held {
		switch {
		case v.Node != nil:
			add(v.Node.Driver)
		case v.Link != nil:
			add(v.Link.Driver)
		}
	}
	slices.Sort(names)
	return names
}

// openDrivers makes the drivers that are needed, and no others, and sees
// whether they can work here.
func openDrivers(ctx context.Context, conf *config.Config, testbed func() *inventory.Snapshot, names []string, log *slog.Logger) (backends map[string]drivers.Driver, close func(), err error) {
	backends = map[string]drivers.Driver{}
	close = func() {
		for name, d := range backends {
			if c, ok := d.(io.Closer); ok {
				if err := c.Close(); err != nil {
					log.Error("closing a driver", "driver", name, "error", err)
				}
			}
		}
	}
	// Nodes of this machine are linked by one switch, whatever driver makes them.
	var wires *wiring.Switch
	if slices.ContainsFunc(names, func(name string) bool { return inventory.LinkedBy(name) == inventory.LinkedBy("namespace") }) {
		wires, err = wiring.Open(wiring.Config{Dir: conf.State, Unowned: "namespace", Logger: log})
		if err != nil {
			return nil, nil, err
		}
		closeDrivers := close
		close = func() {
			closeDrivers()
			if err := wires.Close(); err != nil {
				log.Error("closing the links", "error", err)
			}
		}
	}
	for _, name := range names {
		d, err := openDriver(conf, testbed, wires, name, log)
		if err == nil {
			backends[name] = d
			if err = d.Check(ctx); err != nil {
				err = fmt.Errorf("this machine cannot make nodes of the driver %s: %w", name, err)
			}
		}
		if err != nil {
			close()
			return nil, nil, err
		}
	}
	return backends, close, nil
}

func openDriver(conf *config.Config, testbed func() *inventory.Snapshot, wires *wiring.Switch, name string, log *slog.Logger) (drivers.Driver, error) {
	switch name {
	case "namespace":
		return namespace.New(namespace.Config{
			Dir: conf.State, Wires: wires, Machine: localMachine(conf), Protected: []string{filepath.Dir(conf.Inventory), filepath.Dir(conf.Database), filepath.Dir(conf.PKI.Key), conf.Trusted},
			Images: func(directory string) (string, error) { return directory, nil }, Logger: log,
		})
	case "docker":
		return openDocker(conf, testbed(), wires, log)
	case ssh.Name:
		return openMachines(conf, testbed, log)
	case "simulated":
		log.Warn("nodes of the driver simulated are pretended: there are no machines", "faults", conf.Simulated.Faults)
		return openSimulated(conf)
	}
	return nil, fmt.Errorf("the inventory has sliver types of the driver %q, which this program does not have: it has %s",
		name, strings.Join(driverNames, ", "))
}

// localMachine is how links leave this machine.
func localMachine(conf *config.Config) *wiring.Machine {
	others := slices.ContainsFunc(conf.Docker.Hosts, func(h config.DockerHost) bool { return !strings.HasPrefix(h.Address, "unix:") })
	return &wiring.Machine{Name: "this machine", Underlay: conf.Links.UnderlayAddress(), Uplinks: conf.Links.Uplinks,
		Alone: !others && len(conf.Links.Uplinks) == 0}
}

func openDocker(conf *config.Config, testbed *inventory.Snapshot, wires *wiring.Switch, log *slog.Logger) (*docker.Driver, error) {
	c := docker.Config{Wires: wires, Machine: localMachine(conf), Dir: filepath.Join(conf.State, "docker"), Manager: testbed.Manager, Pull: conf.Docker.Pull, Logger: log}
	for i, h := range conf.Docker.Hosts {
		host := docker.Host{Name: h.Name, Address: h.Address, Underlay: h.UnderlayAddress(), Uplinks: h.Uplinks, TLS: docker.TLS(h.TLS), SSH: docker.SSH(h.SSH)}
		for _, name := range h.Components {
			at := slices.IndexFunc(testbed.Hosts, func(h inventory.Host) bool { return h.Name == name || h.ID.String() == name })
			if at < 0 {
				return nil, fmt.Errorf("docker.hosts[%d].components: the inventory has no host %q", i, name)
			}
			host.Components = append(host.Components, testbed.Hosts[at].ID)
		}
		c.Hosts = append(c.Hosts, host)
	}
	return docker.New(c)
}

func openSimulated(conf *config.Config) (*simulated.Driver, error) {
	c := conf.Simulated
	times, rates := map[simulated.Operation]time.Duration{}, map[simulated.Operation]float64{}
	for _, op := range []struct {
		name simulated.Operation
		time config.Duration
		rate float64
	}{
		{simulated.Make, c.Times.Make, c.Fail.Make}, {simulated.Start, c.Times.Start, c.Fail.Start},
		{simulated.Stop, c.Times.Stop, c.Fail.Stop}, {simulated.UpdateUsers, c.Times.Users, c.Fail.Users},
		{simulated.Connect, c.Times.Connect, c.Fail.Connect}, {simulated.Remove, c.Times.Remove, c.Fail.Remove},
	} {
		times[op.name], rates[op.name] = op.time.Std(), op.rate
	}
	return simulated.New(simulated.Config{
		File: filepath.Join(filepath.Dir(conf.Database), "simulated.journal"), Times: times,
		Faults: simulated.NewFaults(rates, c.Seed, c.Faults),
	})
}

// servable returns an error for an inventory that a running server cannot take
// over.
func servable(now *inventory.Snapshot, backends map[string]drivers.Driver, s *inventory.Snapshot) error {
	if !s.Manager.Equal(now.Manager) || !s.Authority.Equal(now.Authority) {
		return fmt.Errorf("it is of %s, this server is %s: restart it to serve another testbed", s.Manager, now.Manager)
	}
	for _, t := range s.Offered() {
		if backends[t.Driver] == nil {
			return fmt.Errorf("sliver type %s needs the driver %q, which is not running: restart the server to use it", t.Name, t.Driver)
		}
	}
	return nil
}
