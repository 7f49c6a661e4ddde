package mapping

import "croft/mapping/solver"

// Objective says which of several possible placements is liked. All members
// are costs, in units of the score; what costs more is avoided more. The zero
// Objective is the default one.
type Objective struct {
	Layout Layout

	Host     float64 // each host that nothing was on before
	Switch   float64 // each switch that links pass
	Trunk    float64 // each wire between switches that a link runs over
	Scarce   float64 // a node on the largest host where the smallest would do; in between, its share
	Hardware float64 // each kind of host that is given out whole
}

// Layout says how nodes are laid out where there is a choice.
type Layout int

// The layouts.
const (
	Pack   Layout = iota // fill up hosts, so that others stay whole
	Spread               // use many hosts, and the freest ones
)

// DefaultObjective has assign's weights where assign has such, and spares
// large hosts a little.
func DefaultObjective() Objective {
	return Objective{Host: 0.2, Switch: 0.5, Trunk: 0.2, Scarce: 0.04, Hardware: 0.1}
}

// or takes the defaults if no weight is set.
func (o Objective) or() Objective {
	weights := o
	weights.Layout = Pack
	if weights == (Objective{}) {
		d := DefaultObjective()
		d.Layout = o.Layout
		return d
	}
	return o
}

func (o Objective) weights() solver.Weights {
	w := solver.DefaultWeights()
	w.Host, w.Switch, w.Interswitch, w.Class, w.LostAdditive = o.Host, o.Switch, o.Trunk, o.Hardware, 0
	if o.Layout == Spread {
		// A host is worth what it would cost.
		w.Host = -w.Host
	}
	return w
}
