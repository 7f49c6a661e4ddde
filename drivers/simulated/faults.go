package simulated

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"croft/drivers"
	"croft/urn"
)

// Subject is what an operation is done to.
type Subject struct {
	Sliver   urn.URN
	Host     urn.URN // zero for links
	Hostname string  // of a node: its client_id, slice and authority; "" for links
}

func aboutNode(n *drivers.Node) Subject {
	return Subject{Sliver: n.Sliver, Host: n.Host, Hostname: n.Hostname}
}

// Faults has operations fail: some of them at random, and those that a file
// lists, which is read before each operation, so that faults can come and go
// while the driver works.
//
// A line of the file is an operation, or * for all, what it is done to, and,
// if it likes, what the error says:
//
//	start   node3.exp1.*   the disk is broken
//	*       pc17
//	connect *
//
// What it is done to is the name or URN of a host, the host name of a node,
// which begins with its client_id ("node3.exp1.example"), the client_id alone,
// or the URN of a sliver; * and ? stand for any text and any character. # begins
// a comment.
type Faults struct {
	rates map[Operation]float64
	file  string

	mu     sync.Mutex
	random map[Operation]*rand.Rand
}

// NewFaults makes faults of the rates given, from 0 (never) to 1 (always). With
// the same seed, the same operations of each kind fail, counted from the start
// of the driver. file is the list of faults; it may be missing, and "" is none.
func NewFaults(rates map[Operation]float64, seed uint64, file string) *Faults {
	f := &Faults{rates: rates, file: file, random: map[Operation]*rand.Rand{}}
	for i, op := range Operations() {
		f.random[op] = rand.New(rand.NewPCG(seed, uint64(i)))
	}
	return f
}

// errChance is what operations fail with at random.
var errChance = errors.New("failed, as one in so many does by configuration")

func (f *Faults) fail(op Operation, on Subject) error {
	if err := f.listed(op, on); err != nil {
		return err
	}
	rate := f.rates[op]
	if rate <= 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random[op].Float64() < rate {
		return errChance
	}
	return nil
}

// listed returns the error that the file has for an operation.
func (f *Faults) listed(op Operation, on Subject) error {
	if f.file == "" {
		return nil
	}
	text, err := os.ReadFile(f.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the list of faults: %w", err)
	}
	list, err := ParseFaults(string(text))
	if err != nil {
		return fmt.Errorf("reading the list of faults: %s:%w", f.file, err)
	}
	for _, l := range list {
		if (l.Operation == "" || l.Operation == op) && l.matches(on) {
			return errors.New(l.Says)
		}
	}
	return nil
}

// Fault is a line of a list of faults.
type Fault struct {
	Operation Operation // "" for all
	Pattern   string
	Says      string
}

// ParseFaults reads a list of faults. Errors begin with the number of the line.
func ParseFaults(text string) ([]Fault, error) {
	var list []Fault
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		l := Fault{Operation: Operation(words[0]), Says: "fails, as the list of faults says"}
		if l.Operation == "*" {
			l.Operation = ""
		} else if !slices.Contains(Operations(), l.Operation) {
			return nil, fmt.Errorf("%d: %q is none of the operations *, %s", n, words[0], operationNames())
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("%d: what does %s fail for? Write *, or the name of a host or a node", n, words[0])
		}
		l.Pattern = words[1]
		if _, err := path.Match(l.Pattern, ""); err != nil {
			return nil, fmt.Errorf("%d: %q: %w", n, l.Pattern, err)
		}
		if len(words) > 2 {
			l.Says = strings.Join(words[2:], " ")
		}
		list = append(list, l)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%d: %w", len(list)+1, err)
	}
	return list, nil
}

func operationNames() string {
	var names []string
	for _, op := range Operations() {
		names = append(names, string(op))
	}
	return strings.Join(names, ", ")
}

func (l Fault) matches(on Subject) bool {
	client, _, _ := strings.Cut(on.Hostname, ".")
	for _, name := range []string{on.Host.Name, on.Host.String(), on.Hostname, client, on.Sliver.String()} {
		if name == "" {
			continue
		}
		// Slashes are nothing special in names.
		if ok, _ := path.Match(strings.ReplaceAll(l.Pattern, "/", "|"), strings.ReplaceAll(name, "/", "|")); ok {
			return true
		}
	}
	return false
}
