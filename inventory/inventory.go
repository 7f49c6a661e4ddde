// Package inventory holds the testbed as its operator declares it: hosts,
// what they can give, and what they can be asked for. A Snapshot is immutable;
// a reload makes a new one.
package inventory

import (
	"croft/capacity"
	"croft/request"
	"croft/urn"
)

// Snapshot is the testbed at one time. Nothing in it may be changed.
type Snapshot struct {
	Authority urn.Authority
	Manager   urn.URN   // the component manager: urn:…+authority+cm
	Aliases   []urn.URN // further names of the same manager
	Sites     []Site
	Images    []Image
	Types     []SliverType
	Hosts     []Host
	Pools     Pools
	Digest    string // of the whole content: equal digests, equal inventories
}

// Managers lists the manager's URN and its aliases.
func (s *Snapshot) Managers() []urn.URN { return append([]urn.URN{s.Manager}, s.Aliases...) }

// Host returns the host of that URN.
func (s *Snapshot) Host(id urn.URN) (*Host, bool) {
	for i := range s.Hosts {
		if s.Hosts[i].ID.Equal(id) {
			return &s.Hosts[i], true
		}
	}
	return nil, false
}

// Type returns the sliver type of that name.
func (s *Snapshot) Type(name request.SliverType) (*SliverType, bool) {
	for i := range s.Types {
		if s.Types[i].Name == name {
			return &s.Types[i], true
		}
	}
	return nil, false
}

// Site is a place where hosts stand.
type Site struct {
	Name      string
	Country   string // ISO 3166 two letters, or a name
	Latitude  float64
	Longitude float64
}

// SliverType is a way to make nodes, and its defaults.
type SliverType struct {
	Name    request.SliverType
	Driver  string          // the driver that makes such nodes
	Default capacity.Amount // what a node takes that does not say
	Images  []urn.URN       // those it can boot; the first is the default
}

// Image is a system that nodes can boot.
type Image struct {
	ID           urn.URN
	Name         string // short name
	Description  string
	OS           string
	Version      string
	Architecture string
	Source       string // what the driver needs to find it; "" for the driver's own
}

// Host is one component: a machine, or a share of one, that nodes are placed
// on.
type Host struct {
	ID            urn.URN
	Name          string
	Site          string // name of a Site
	HardwareTypes []string
	Types         []request.SliverType // those it can make
	Exclusive     bool                 // it can be given whole to one slice
	Shared        bool                 // it can hold nodes of several slices
	Capacity      capacity.Amount
	MaxSlivers    int    // most nodes on it; 0 for no limit but the capacity
	OutOfService  string // why it takes no new nodes; "" if it does
	Interfaces    []Interface
}

// Interface is a network interface of a host.
type Interface struct {
	ID    urn.URN
	Name  string
	Speed capacity.Kbps
}

// Pools are what links draw on.
type Pools struct {
	Addresses string // CIDR that addresses are assigned from when a request gives none
}
