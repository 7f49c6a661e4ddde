package mapping

import (
	"fmt"
	"slices"

	"croft/capacity"
	"croft/mapping/solver"
	"croft/request"
)

// Explanation tells how an answer came about.
type Explanation struct {
	Nodes  []NodeExplanation
	Trunks []TrunkLoad
	Score  float64
	Parts  []ScorePart // of the score
	Steps  int64       // of the solver's search
}

// NodeExplanation tells why a node is where it is.
type NodeExplanation struct {
	Node       request.ClientID
	Hosts      int            // that there are
	Candidates int            // hosts that could take it, nothing else of the request being placed
	LostTo     map[string]int // hosts that could not, by what is in the way
	Host       string         // chosen; "" if it was refused
	Type       request.SliverType
	Costs      float64 // of the host for this node: late types, features, what is scarce
	Least      float64 // of all candidates
	Cheapest   string  // the candidate that costs least
}

// ScorePart is what of a score is for one thing.
type ScorePart struct {
	What string
	Cost float64
}

// TrunkLoad tells what a wire between switches carries.
type TrunkLoad struct {
	Name            string
	Taken, Adds, Of capacity.Kbps // by others, by this request, of what there is; Of is 0 if not known
}

// lostTo names what was in the way, for people.
var lostTo = map[stage]string{
	byBinding: "another component", bySite: "site", byHardware: "hardware type", byArchitecture: "architecture", byType: "sliver type",
	byPolicy: "policy", byImage: "image", byFeature: "features", byUse: "exclusive or shared", byInterfaces: "interfaces", byShaping: "shaping of links",
	byDriver: "driver", bySize: "size", byService: "out of service", byOwner: "taken by others", byRoom: "no room",
}

func (x *Explanation) candidates(j *job) {
	for i := range j.req.Nodes {
		w := j.wantOf[i]
		n := NodeExplanation{Node: j.req.Nodes[i].ID, Hosts: len(j.slots), LostTo: map[string]int{}}
		for at, st := range w.stages {
			if st == fits {
				n.Candidates++
			} else if w.bound < 0 || w.bound == at {
				n.LostTo[lostTo[st]]++
			} else {
				n.LostTo[lostTo[byBinding]]++
			}
		}
		x.Nodes = append(x.Nodes, n)
	}
}

func (x *Explanation) chosen(j *job, l *layout, sol *solver.Solution, p *Placement) {
	x.Score, x.Steps = sol.Score, sol.Steps
	for i := range p.Nodes {
		n := &x.Nodes[i]
		n.Host, n.Type = p.Nodes[i].Host.Name, p.Nodes[i].SliverType
		o := j.offersOf(j.wantOf[i], l.kinds[i])
		for k, h := range o.hosts {
			if h == sol.Hosts[i] {
				n.Costs = o.costs[k]
			}
			if k == 0 || o.costs[k] < n.Least {
				n.Least, n.Cheapest = o.costs[k], j.slots[h].host.Name
			}
		}
	}
	fresh, own := map[int32]bool{}, 0.0
	for i, h := range sol.Hosts[:len(p.Nodes)] {
		if j.slots[h].taken == 0 {
			fresh[h] = true
		}
		own += x.Nodes[i].Costs
	}
	hosts := float64(len(fresh)) * l.problem.Weights.Host
	x.Parts = []ScorePart{{"hosts", hosts}, {"nodes on them", own}, {"links, switches and groups", sol.Score - hosts - own}}
	adds := map[int32]capacity.Kbps{}
	var order []int32
	for i := range p.Links {
		for _, c := range p.Links[i].Route {
			w := j.byWire[c.Wire.Canonical()]
			if !j.wires[w].trunk {
				continue
			}
			if _, known := adds[w]; !known {
				order = append(order, w)
			}
			adds[w] += c.Bandwidth
		}
	}
	slices.Sort(order)
	for _, w := range order {
		x.Trunks = append(x.Trunks, j.trunkLoad(w, adds[w]))
	}
}

func (j *job) trunkLoad(w int32, adds capacity.Kbps) TrunkLoad {
	wire := &j.testbed.Spec().Wires[w]
	t := TrunkLoad{Name: wire.Name, Adds: adds}
	if wire.Bandwidth < unbounded {
		t.Of = capacity.Kbps(wire.Bandwidth)
	}
	if j.occupancy != nil {
		t.Taken = j.occupancy.Wires[j.wires[w].id.Canonical()].Bandwidth
	}
	return t
}

// String writes the load for people.
func (t TrunkLoad) String() string {
	if t.Of == 0 {
		return fmt.Sprintf("%s: %d kbit/s taken, %d more by this request", t.Name, t.Taken, t.Adds)
	}
	return fmt.Sprintf("%s: %d of %d kbit/s taken, %d more by this request", t.Name, t.Taken, t.Of, t.Adds)
}
