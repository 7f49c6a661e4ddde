package mapping

import (
	"math"
	"math/rand/v2"
	"slices"

	"croft/capacity"
	"croft/request"
)

// A search places the nodes of a request on a board, one after the other, and
// goes back when one has no place left.
//
// It is complete within its effort: what it has proved wrong it never tries
// again. Nodes that ask for the same are interchangeable, and so are hosts that
// look the same to every node, so a failed choice rules out all its likes. The
// next node is one of those with the least room to spare; a branch is given up
// as soon as some kind of node has less room than it needs, or all together ask
// for more than there is.
//
// If the effort ends first, it starts anew a few times with a little chance in
// its choices, and takes the first placement that works.
type search struct {
	board  *board
	wants  []*want
	states []state
	links  *linkage
	limits []limit
	layout Layout

	placed []int32 // by node: option of its want, -1 if open
	wantOf []int32 // by node
	driver []int   // by group: what its placed nodes are made by; -1 if open
	inUse  []int   // by group: nodes placed
	likes  []uint64

	countable [4]bool // dimensions that every host in question counts
	free      [4]int64
	needed    [4]int64

	left    int // effort
	failed  bool
	gaveUp  bool
	chances *rand.Rand // nil in the systematic search
}

// state is what a search knows of a want.
type state struct {
	remaining int
	copies    []int32 // by slot: how many of its nodes would fit there now
	room      int     // sum of copies
	banned    []uint16
	least     [4]int64 // what each of its nodes takes at least
}

// outcome of a search.
type outcome int

const (
	found outcome = iota
	proved
	undecided
)

// arrange places the nodes of wants. The placement is an option by node.
func arrange(b *board, wants []*want, links *linkage, layout Layout, o Options) ([]option, *board, outcome) {
	effort := o.Effort
	if effort <= 0 {
		effort = DefaultEffort
	}
	s := newSearch(b, wants, links, layout)
	s.left = effort / 2
	if s.next() {
		return s.result(), s.board, found
	}
	if !s.gaveUp {
		return nil, nil, proved
	}
	if tooMany(b, wants) {
		return nil, nil, proved
	}
	chances := rand.New(rand.NewPCG(o.Start, 0x6d6170))
	for left := effort / 2; left > 0; {
		s = newSearch(b, wants, links, layout)
		s.chances = chances
		share := min(left, 4*s.size()+1000)
		s.left = share
		if s.next() {
			return s.result(), s.board, found
		}
		if !s.gaveUp {
			return nil, nil, proved
		}
		left -= share
	}
	return nil, nil, undecided
}

func dimensions(a capacity.Amount) [4]int64 {
	return [4]int64{int64(a.Cores), int64(a.Memory), int64(a.Disk), a.GPUs}
}

func newSearch(b *board, wants []*want, links *linkage, layout Layout) *search {
	s := &search{board: b.clone(), wants: wants, states: make([]state, len(wants)), links: links, layout: layout, limits: b.limits(links.existing)}
	nodes, groups := 0, 0
	for _, w := range wants {
		groups = max(groups, w.group+1)
		for _, n := range w.nodes {
			nodes = max(nodes, n+1)
		}
	}
	s.placed, s.wantOf = make([]int32, nodes), make([]int32, nodes)
	for i := range s.placed {
		s.placed[i], s.wantOf[i] = -1, -1
	}
	s.driver, s.inUse = make([]int, groups), make([]int, groups)
	for i := range s.driver {
		s.driver[i] = -1
	}
	s.countable = [4]bool{true, true, true, true}
	usable := make([]bool, len(b.slots))
	for i, w := range wants {
		st := &s.states[i]
		st.remaining = len(w.nodes)
		st.copies = make([]int32, len(b.slots))
		st.banned = make([]uint16, len(w.options))
		st.least = [4]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
		for _, o := range w.options {
			usable[o.slot] = true
			d := dimensions(o.demand)
			for k := range d {
				if o.whole {
					d[k] = 0 // it takes what there is, be it little
				}
				st.least[k] = min(st.least[k], d[k])
			}
		}
		for _, n := range w.nodes {
			s.wantOf[n] = int32(i)
			for k := range st.least {
				if len(w.options) > 0 {
					s.needed[k] += st.least[k]
				}
			}
		}
	}
	for i := range b.slots {
		if !usable[i] {
			continue
		}
		for k, v := range dimensions(b.slots[i].size) {
			s.countable[k] = s.countable[k] && v < endless
		}
		for k, v := range dimensions(b.slots[i].free) {
			s.free[k] += v
		}
	}
	s.alike()
	for i := range wants {
		s.recount(i)
	}
	return s
}

// size is the work of placing every node once.
func (s *search) size() int {
	n := 0
	for _, w := range s.wants {
		n += len(w.nodes) * (len(w.options) + len(s.wants))
	}
	return n
}

// alike gives slots that every want treats alike the same number.
func (s *search) alike() {
	s.likes = make([]uint64, len(s.board.slots))
	// Which image is booted is nobody else's business.
	type mark struct {
		before           uint64
		want, kind, rank int
		exclusive, whole bool
		demand           capacity.Amount
	}
	numbers := map[mark]uint64{}
	// Where nodes stand to others also tells hosts apart.
	bySwitch, bySite := false, false
	for _, g := range s.links.groups {
		bySwitch = bySwitch || g.group.By == request.BySwitch
		bySite = bySite || g.group.By == request.BySite
	}
	for i := range s.likes {
		if bySwitch {
			s.likes[i] += uint64(s.board.home[i]+1) << 40
		}
		if bySite {
			s.likes[i] += uint64(s.board.zones[s.board.slots[i].host.Site]+1) << 20
		}
		if len(s.links.isParent) > 0 && s.board.slots[i].hasParts {
			s.likes[i] += uint64(i+1) << 40
		}
		if len(s.links.isParent) > 0 && s.board.slots[i].parent >= 0 {
			s.likes[i] += uint64(s.board.slots[i].parent+1) << 40
		}
		if len(s.links.req.Classes) > 0 || len(s.limits) > 0 {
			s.likes[i] += uint64(s.board.twins[i]+1) << 4
		}
	}
	for i, w := range s.wants {
		for _, o := range w.options {
			m := mark{s.likes[o.slot], i, o.kind, o.rank, o.exclusive, o.whole, o.demand}
			n := numbers[m]
			if n == 0 {
				n = uint64(len(numbers) + 1)
				numbers[m] = n
			}
			s.likes[o.slot] = n
		}
	}
}

// next places all nodes that are open yet.
func (s *search) next() bool {
	pick := -1
	slack := math.MaxInt
	done := true
	for i := range s.states {
		st := &s.states[i]
		if st.remaining == 0 {
			continue
		}
		done = false
		here := st.room - st.remaining
		if here < 0 {
			s.failed = true
			return false
		}
		if here < slack || (here == slack && s.heavier(i, pick)) ||
			(s.chances != nil && here <= slack+2 && s.chances.IntN(4) == 0) {
			pick, slack = i, here
		}
	}
	if done {
		return true
	}
	for k, countable := range s.countable {
		if countable && s.needed[k] > s.free[k] {
			s.failed = true
			return false
		}
	}
	w, st := s.wants[pick], &s.states[pick]
	node := w.nodes[len(w.nodes)-st.remaining]
	var banned []int32
	for !s.gaveUp {
		o := s.best(pick, node)
		if o < 0 {
			break
		}
		before := s.place(pick, node, o)
		if s.next() {
			return true
		}
		s.unplace(pick, node, o, before)
		if s.gaveUp {
			break
		}
		if s.left <= 0 {
			s.gaveUp = true
			break
		}
		// No node of this want can go there or to a place like it, now.
		banned = s.ban(pick, o, banned)
		if st.room < st.remaining {
			break
		}
	}
	for _, o := range banned {
		st.banned[o]--
		s.recountSlot(pick, w.options[o].slot)
	}
	s.failed = true
	return false
}

// heavier prefers the want that takes more, then the earlier one.
func (s *search) heavier(i, than int) bool {
	if than < 0 {
		return true
	}
	a, b := s.states[i].least, s.states[than].least
	for k := range a {
		if a[k] != b[k] {
			return a[k] > b[k]
		}
	}
	return false
}

// fit reports whether an option can be taken now.
func (s *search) fit(want int, o int32) bool {
	w := s.wants[want]
	op := &w.options[o]
	sl := &s.board.slots[op.slot]
	if s.states[want].banned[o] > 0 || sl.places <= 0 || (op.whole && sl.taken > 0) || !op.demand.Fits(sl.free) {
		return false
	}
	for _, u := range w.extra[op.kind] {
		if u.amount > s.board.extra[op.slot*len(s.board.extras)+u.index] {
			return false
		}
	}
	return w.group == 0 || s.driver[w.group] < 0 || s.driver[w.group] == s.driverOf(op)
}

// driverOf numbers drivers by the first type that has it.
func (s *search) driverOf(o *option) int {
	for i, t := range s.board.types {
		if t.LinkedBy() == s.board.types[o.kind].LinkedBy() {
			return i
		}
	}
	return o.kind
}

// recount sets how much room a want has.
func (s *search) recount(want int) {
	w, st := s.wants[want], &s.states[want]
	for i := range st.copies {
		st.room -= int(st.copies[i])
		st.copies[i] = 0
	}
	last := -1
	for _, o := range w.options {
		if o.slot != last {
			last = o.slot
			s.recountSlot(want, o.slot)
		}
	}
	s.left -= len(w.options)
}

// recountSlot bounds how many nodes of a want would fit on a slot.
func (s *search) recountSlot(want, at int) {
	w, st := s.wants[want], &s.states[want]
	sl := &s.board.slots[at]
	copies, whole := 0, 0
	least := [4]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	for o := w.first[at]; o < w.first[at+1]; o++ {
		if !s.fit(want, o) {
			continue
		}
		if w.options[o].whole {
			whole = 1
			continue
		}
		copies = min(sl.places, len(w.nodes))
		for k, d := range dimensions(w.options[o].demand) {
			least[k] = min(least[k], d)
		}
	}
	for k, have := range dimensions(sl.free) {
		if copies > 0 && least[k] > 0 {
			copies = int(min(int64(copies), have/least[k]))
		}
	}
	copies = max(copies, whole)
	st.room += copies - int(st.copies[at])
	st.copies[at] = int32(copies)
}

// best is the option for a node that is liked most; -1 if there is none.
func (s *search) best(want, node int) int32 {
	w := s.wants[want]
	s.left -= len(w.options)
	best, score := int32(-1), rating{}
	for o := range w.options {
		if !s.fit(want, int32(o)) || !s.company(w, node, &w.options[o]) {
			continue
		}
		if r := s.rate(&w.options[o], node); best < 0 || r.less(&score) {
			best, score = int32(o), r
		}
	}
	return best
}

// before is what a placement changed.
type before struct {
	slot   slot
	driver int
}

func (s *search) place(want, node int, o int32) before {
	w := s.wants[want]
	op := &w.options[o]
	sl := &s.board.slots[op.slot]
	was := before{*sl, s.driver[w.group]}
	sl.free = sl.free.Minus(op.demand)
	sl.taken++
	sl.places--
	if op.whole {
		sl.places = 0
	}
	for _, u := range w.extra[op.kind] {
		s.board.extra[op.slot*len(s.board.extras)+u.index] -= u.amount
	}
	s.placed[node] = o
	s.states[want].remaining--
	for k, d := range dimensions(op.demand) {
		s.free[k] -= d
		s.needed[k] -= s.states[want].least[k]
	}
	s.changed(op.slot)
	if w.group > 0 {
		if s.inUse[w.group]++; was.driver < 0 {
			s.driver[w.group] = s.driverOf(op)
			s.recountGroup(w.group)
		}
	}
	return was
}

func (s *search) unplace(want, node int, o int32, was before) {
	w := s.wants[want]
	op := &w.options[o]
	s.board.slots[op.slot] = was.slot
	for _, u := range w.extra[op.kind] {
		s.board.extra[op.slot*len(s.board.extras)+u.index] += u.amount
	}
	s.placed[node] = -1
	s.states[want].remaining++
	for k, d := range dimensions(op.demand) {
		s.free[k] += d
		s.needed[k] += s.states[want].least[k]
	}
	s.changed(op.slot)
	if w.group > 0 {
		s.inUse[w.group]--
		if was.driver < 0 {
			s.driver[w.group] = -1
			s.recountGroup(w.group)
		}
	}
}

// changed counts anew what fits on a slot.
func (s *search) changed(at int) {
	for i, w := range s.wants {
		if w.first[at] < w.first[at+1] && s.states[i].remaining > 0 {
			s.recountSlot(i, at)
		}
	}
	s.left -= len(s.wants)
}

func (s *search) recountGroup(group int) {
	for i, w := range s.wants {
		if w.group == group {
			s.recount(i)
		}
	}
}

// ban takes an option and those like it from a want for the rest of a choice.
func (s *search) ban(want int, failed int32, banned []int32) []int32 {
	w, st := s.wants[want], &s.states[want]
	f := &w.options[failed]
	model := &s.board.slots[f.slot]
	s.left -= len(w.options)
	for o := range w.options {
		op := &w.options[o]
		sl := &s.board.slots[op.slot]
		same := op.slot == f.slot || (s.likes[op.slot] == s.likes[f.slot] &&
			sl.free == model.free && sl.places == model.places && (sl.taken == 0) == (model.taken == 0) && s.sameExtras(op.slot, f.slot))
		if same && op.kind == f.kind {
			st.banned[o]++
			banned = append(banned, int32(o))
			s.recountSlot(want, op.slot)
		}
	}
	return banned
}

// sameExtras reports whether the same is free on two slots of what is counted
// beside capacities.
func (s *search) sameExtras(a, b int) bool {
	n := len(s.board.extras)
	return slices.Equal(s.board.extra[a*n:(a+1)*n], s.board.extra[b*n:(b+1)*n])
}

// result is the placement, by node.
func (s *search) result() []option {
	all := make([]option, len(s.placed))
	for node, o := range s.placed {
		if s.wantOf[node] >= 0 {
			all[node] = s.wants[s.wantOf[node]].options[o]
		}
	}
	return all
}
