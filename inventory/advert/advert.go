// Package advert turns the advertisement RSpec of a testbed into an inventory:
// its nodes, images, switches and cables, to be served by the simulated driver.
// So a real testbed can be tried, and taught, from what it publishes.
package advert

import (
	"errors"
	"fmt"
	"strings"

	"croft/inventory"
	"croft/urn"
)

// Options direct an import. The zero Options are good ones.
type Options struct {
	// Authority is what the imported testbed is called; "" for what most of
	// its nodes say.
	Authority urn.Authority

	// Driver is what will make its nodes; "" for simulated.
	Driver string

	// KeepUnavailable puts the nodes out of service that the advertisement
	// says are not available. Mostly they were just taken when it was made.
	KeepUnavailable bool
}

// Imported is an inventory made of an advertisement.
type Imported struct {
	YAML     []byte              // to be written to inventory.yaml
	Snapshot *inventory.Snapshot // what Parse reads of it
	Notes    []string            // what could not be taken over, and what was guessed
}

// Import reads an advertisement: GENI version 3, or ProtoGENI 2. name stands
// for it in messages.
func Import(data []byte, name string, o Options) (*Imported, error) {
	doc, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", name, err)
	}
	if o.Driver == "" {
		o.Driver = "simulated"
	}
	t := &testbed{options: o}
	if err := t.take(doc); err != nil {
		return nil, fmt.Errorf("import %s: %w", name, err)
	}
	text := t.write(name)
	s, err := inventory.Parse(text, name)
	if err != nil {
		return nil, fmt.Errorf("import %s: what was made of it is no inventory: %w", name, err)
	}
	return &Imported{YAML: text, Snapshot: s, Notes: t.notes}, nil
}

// take takes over what an inventory can hold.
func (t *testbed) take(doc *document) error {
	if len(doc.nodes) == 0 {
		return t.noNodes(doc)
	}
	if err := t.name(doc); err != nil {
		return err
	}
	t.takeNodes(doc)
	if len(t.hosts) == 0 {
		return errors.New("it advertises switches, but no node to place anything on")
	}
	t.takeLinks(doc)
	t.takeRest(doc)
	return nil
}

func (t *testbed) noNodes(doc *document) error {
	for _, name := range doc.others {
		if name == "datapath" {
			return errors.New("it advertises OpenFlow datapaths, but no nodes")
		}
	}
	if len(doc.others) == 0 {
		return errors.New("it advertises nothing")
	}
	return fmt.Errorf("it advertises no nodes, only %s", strings.Join(doc.others, ", "))
}
