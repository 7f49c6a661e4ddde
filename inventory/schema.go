package inventory

import (
	"bytes"
	"encoding/json"
)

// Schema returns the JSON Schema (draft 2020-12) of inventory.yaml, for
// editors and other checkers. A document that the schema accepts may still be
// refused by Parse for what a schema cannot say: that names are unique, and
// that what is referred to exists.
func Schema() []byte {
	s := fileKind.schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Inventory of a testbed"
	s["description"] = "The hosts that Croft places nodes on, what they offer, and how they are wired."
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		panic(err) // a map of strings, numbers and maps always encodes
	}
	return out.Bytes()
}
