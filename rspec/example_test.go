package rspec_test

import (
	"context"
	"errors"
	"fmt"

	"croft/inventory"
	"croft/languages"
	"croft/rspec"
	"croft/slivers"
	"croft/urn"
)

func ExampleLanguage_Compile() {
	document := []byte(`<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">
  <node client_id="a"><interface client_id="a:if0"/></node>
  <node client_id="b"><interface client_id="b:if0"/></node>
  <link client_id="l"><interface_ref client_id="a:if0"/><interface_ref client_id="b:if0"/></link>
</rspec>`)
	scope := languages.Scope{Managers: []urn.URN{urn.MustParse("urn:publicid:IDN+example.org+authority+cm")}}
	compiled, err := rspec.Language{}.Compile(context.Background(), document, scope)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range compiled.Request.Nodes {
		fmt.Println(n.ID, "at", n.Place)
	}
	fmt.Println(len(compiled.Request.Links), "link")
	// Output:
	// a at line 2, rspec/node[client_id="a"]
	// b at line 3, rspec/node[client_id="b"]
	// 1 link
}

func ExampleLanguage_Compile_mistake() {
	document := []byte(`<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">
  <node client_id="a"><interface client_id="a:if0"/></node>
  <link client_id="l"><interface_ref client_id="a:if1"/></link>
</rspec>`)
	_, err := rspec.Language{}.Compile(context.Background(), document, languages.Scope{})
	var wrong *languages.Error
	if errors.As(err, &wrong) {
		for _, p := range wrong.Problems {
			fmt.Println(p)
		}
	}
	// Output:
	// line 3, rspec/link[client_id="l"]/interface_ref[client_id="a:if1"]: no node has an interface "a:if1" (did you mean a:if0?)
}

func ExampleFormatOf() {
	f, ok := rspec.FormatOf("protogeni", "2")
	fmt.Println(f, ok, f.Namespace())
	// Output: ProtoGENI 2 true http://www.protogeni.net/resources/rspec/2
}

func ExampleManifest() {
	document := []byte(`<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">
  <!-- kept -->
  <node client_id="a" exclusive="false"><sliver_type name="namespace"/></node>
</rspec>`)
	manager := urn.MustParse("urn:publicid:IDN+example.org+authority+cm")
	manifest, err := rspec.Manifest(rspec.ManifestInput{
		Snapshot:  &inventory.Snapshot{Manager: manager},
		Documents: []slivers.Document{{ID: 1, MediaType: rspec.MediaType, Bytes: document}},
		Slivers: []slivers.Sliver{{
			URN: urn.MustParse("urn:publicid:IDN+example.org+sliver+1"), Document: 1, Kind: slivers.Node, ClientID: "a",
			Node: &slivers.NodeFacts{Host: urn.MustParse("urn:publicid:IDN+example.org+node+pc1")},
		}},
	})
	fmt.Println(string(manifest), err)
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <rspec xmlns="http://www.geni.net/resources/rspec/3" type="manifest">
	//   <!-- kept -->
	//   <node client_id="a" exclusive="false" component_id="urn:publicid:IDN+example.org+node+pc1" component_manager_id="urn:publicid:IDN+example.org+authority+cm" sliver_id="urn:publicid:IDN+example.org+sliver+1"><sliver_type name="namespace"/></node>
	// </rspec> <nil>
}
