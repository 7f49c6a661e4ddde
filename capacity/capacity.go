// Package capacity holds the amounts that requests ask for and inventories
// offer, each in one unit.
package capacity

import "fmt"

// Cores counts processor cores in thousandths: Cores(1500) is one and a half.
type Cores int64

// Core is one whole core.
const Core Cores = 1000

// MiB is an amount of memory or disk in mebibytes.
type MiB int64

// GiB is 1024 MiB.
const GiB MiB = 1024

// Kbps is a rate in kbit/s (1000 bit/s), the unit of RSpec capacities.
type Kbps int64

// Amount is what a node takes from its host, or what a host has to give.
type Amount struct {
	Cores  Cores `json:"cores,omitempty"`
	Memory MiB   `json:"memory,omitempty"`
	Disk   MiB   `json:"disk,omitempty"`
	GPUs   int64 `json:"gpus,omitempty"`
}

// Plus returns a + b.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.Cores + b.Cores, a.Memory + b.Memory, a.Disk + b.Disk, a.GPUs + b.GPUs}
}

// Minus returns a - b.
func (a Amount) Minus(b Amount) Amount {
	return Amount{a.Cores - b.Cores, a.Memory - b.Memory, a.Disk - b.Disk, a.GPUs - b.GPUs}
}

// Fits reports whether a is within b in every dimension.
func (a Amount) Fits(b Amount) bool {
	return a.Cores <= b.Cores && a.Memory <= b.Memory && a.Disk <= b.Disk && a.GPUs <= b.GPUs
}

// Or returns a with every dimension that is zero taken from b.
func (a Amount) Or(b Amount) Amount {
	if a.Cores == 0 {
		a.Cores = b.Cores
	}
	if a.Memory == 0 {
		a.Memory = b.Memory
	}
	if a.Disk == 0 {
		a.Disk = b.Disk
	}
	if a.GPUs == 0 {
		a.GPUs = b.GPUs
	}
	return a
}

// String writes the amount for people: "2 cores, 512 MiB memory, 1024 MiB disk".
func (a Amount) String() string {
	text := fmt.Sprintf("%g cores, %d MiB memory, %d MiB disk", float64(a.Cores)/1000, a.Memory, a.Disk)
	if a.GPUs != 0 {
		text += fmt.Sprintf(", %d GPUs", a.GPUs)
	}
	return text
}
