package rspec

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"croft/capacity"
	"croft/languages"
	"croft/request"
	"croft/urn"
)

// withoutPlaces takes the places out of a request, to compare it.
func withoutPlaces(r *request.Request) {
	for i := range r.Nodes {
		n := &r.Nodes[i]
		n.Place, n.TypePlace, n.Image.Place = request.Place{}, request.Place{}, request.Place{}
		for k := range n.Features {
			n.Features[k].Place = request.Place{}
		}
		for k := range n.OtherImages {
			n.OtherImages[k].Place = request.Place{}
		}
		for k := range n.Interfaces {
			n.Interfaces[k].Place = request.Place{}
		}
	}
	for i := range r.Links {
		l := &r.Links[i]
		l.Place = request.Place{}
		for k := range l.Ends {
			l.Ends[k].Place = request.Place{}
		}
		for k := range l.Properties {
			l.Properties[k].Place = request.Place{}
		}
	}
	for i := range r.Groups {
		r.Groups[i].Place = request.Place{}
	}
	for i := range r.Classes {
		r.Classes[i].Place = request.Place{}
	}
}

// What a request wants comes back when it is written and read again.
func TestWantsThereAndBack(t *testing.T) {
	end := func(node, iface string) request.End {
		return request.End{Node: request.ClientID(node), Interface: request.ClientID(iface)}
	}
	want := &request.Request{
		Nodes: []request.Node{
			{ID: "a", SliverType: "raw-pc", Class: "fast", Site: "north", Architecture: "x86_64", Optional: true, Preemptible: true,
				Capacity: capacity.Amount{Cores: 1500, Memory: 2048, Disk: 10240, GPUs: 2}, Most: capacity.Amount{Cores: 8000},
				Features:    []request.Feature{{Name: "ssd", Weight: 0.25}, {Name: "scratch", Weight: 1, Amount: 200}},
				OtherImages: []request.Image{{System: request.System{OS: "linux", Distribution: "debian", MinVersion: "11", MaxVersion: "13"}}, {Name: "plain"}},
				Interfaces:  []request.Interface{{ID: "a:if0"}}},
			{ID: "b", Parent: "a", Interfaces: []request.Interface{{ID: "b:if0"}}},
		},
		Links: []request.Link{{ID: "l", Ends: []request.End{end("a", "a:if0"), end("b", "b:if0")}, Multiplexed: request.Yes, Trivial: request.No,
			NoInterswitch: true, BestEffort: true, VLAN: 150, Properties: []request.Property{{From: "a:if0", To: "b:if0", Capacity: 1000, LatencyMs: 5, JitterMs: 1.5, Loss: 2}}}},
		Groups:  []request.Group{{Name: "g", Apart: true, By: request.BySwitch, Weight: 0.5, Nodes: []request.ClientID{"a", "b"}}},
		Classes: []request.Class{{Name: "fast", Weight: 1, Types: []string{"d430", "d710"}}},
	}
	text, lost := WriteRequest(want)
	if len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
	got, err := Language{}.Compile(context.Background(), text, languages.Scope{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	withoutPlaces(got.Request)
	if !reflect.DeepEqual(got.Request, want) {
		t.Errorf("got  %+v\nwant %+v\n%s", got.Request, want, text)
	}
}

func TestWants(t *testing.T) {
	const head = `<rspec type="request" xmlns="http://www.geni.net/resources/rspec/3" xmlns:e="` + nsEmulab + `" xmlns:c="` + nsCroft + `" xmlns:s="` + nsSharedVLAN + `">`
	const tagged = `<node client_id="a"><interface client_id="i"/></node><link client_id="l"><interface_ref client_id="i"/></link>`
	vlan := func(r *request.Request) any { return fmt.Sprintf("%d %s", r.Links[0].VLAN, r.Links[0].SharedVLAN) }
	for _, c := range []struct {
		name, text string
		check      func(r *request.Request) any
		want       any
		err        string
	}{
		{name: "a soft feature", text: `<node client_id="a"><e:fd name="ssd" weight="0.5"/></node>`,
			check: func(r *request.Request) any { return r.Nodes[0].Features[0].Weight }, want: 0.5},
		{name: "a hard feature", text: `<node client_id="a"><e:fd name="ssd" weight="0.5" violatable="true"/></node>`,
			check: func(r *request.Request) any { return r.Nodes[0].Features[0].Weight }, want: 1.0},
		{name: "an amount", text: `<node client_id="a"><e:fd name="scratch" weight="7" local_operator="+"/></node>`,
			check: func(r *request.Request) any { return r.Nodes[0].Features[0].Amount }, want: 7.0},
		{name: "a feature without a number", text: `<node client_id="a"><e:fd name="ssd" weight="much"/></node>`, err: `weight="much"`},
		{name: "a class by hardware type", text: `<e:vclass name="v" weight="hard"><e:physical_type name="d710"/></e:vclass><node client_id="a"><hardware_type name="v"/></node>`,
			check: func(r *request.Request) any {
				return []any{r.Nodes[0].Class, len(r.Nodes[0].HardwareTypes), r.Classes[0].Weight}
			}, want: []any{request.ClassName("v"), 0, 1.0}},
		{name: "interswitch", text: `<node client_id="a"><interface client_id="i"/></node><link client_id="l"><interface_ref client_id="i"/><e:interswitch allow="no"/></link>`,
			check: func(r *request.Request) any { return r.Links[0].NoInterswitch }, want: true},
		{name: "multiplexing off", text: `<node client_id="a"><interface client_id="i"/></node><link client_id="l"><interface_ref client_id="i"/><e:link_multiplexing enabled="false"/></link>`,
			check: func(r *request.Request) any { return r.Links[0].Multiplexed }, want: request.No},
		{name: "best effort", text: `<node client_id="a"><interface client_id="i"/></node><link client_id="l"><interface_ref client_id="i"/><e:best_effort enabled="true"/></link>`,
			check: func(r *request.Request) any { return r.Links[0].BestEffort }, want: true},
		{name: "a hop", text: `<node client_id="a"><interface client_id="i"/></node><link client_id="l"><interface_ref client_id="i"/>
			<component_hop><interface_ref client_id="i" component_id="urn:publicid:IDN+example.org+interface+pc1:eth2"/></component_hop></link>`,
			check: func(r *request.Request) any { return r.Nodes[0].Interfaces[0].Component }, want: urn.MustParse("urn:publicid:IDN+example.org+interface+pc1:eth2")},
		{name: "a tag", text: strings.Replace(tagged, "<link ", `<link vlantag=" 150 " `, 1), check: vlan, want: "150 "},
		{name: "any tag", text: strings.Replace(tagged, "<link ", `<link vlantag="any" `, 1), check: vlan, want: "0 "},
		{name: "no tag", text: strings.Replace(tagged, "<link ", `<link vlantag="0" `, 1), check: vlan, want: "0 "},
		{name: "a tag that is none", text: strings.Replace(tagged, "<link ", `<link vlantag="4095" `, 1), err: `vlantag="4095"`},
		{name: "a tag in words", text: strings.Replace(tagged, "<link ", `<link vlantag="untagged" `, 1), err: `vlantag="untagged"`},
		{name: "a tag of a shared VLAN", text: strings.Replace(tagged, "</link>", `<s:link_shared_vlan name="v" vlantag="7"/></link>`, 1), check: vlan, want: "7 v"},
		{name: "a shared VLAN's tag alone", text: strings.Replace(tagged, "</link>", `<s:link_shared_vlan vlantag="7"/></link>`, 1), check: vlan, want: "7 7"},
		{name: "a shared VLAN of an interface", text: strings.Replace(tagged, `<interface client_id="i"/>`, `<interface client_id="i"><s:link_shared_vlan vlantag="7"/></interface>`, 1), check: vlan, want: "7 7"},
		{name: "a shared VLAN's tag that is none", text: strings.Replace(tagged, "</link>", `<s:link_shared_vlan name="v" vlantag="-7"/></link>`, 1), err: `vlantag="-7"`},
		{name: "a group of nobody", text: `<node client_id="a"/><c:group name="g" place="apart"><c:member client_id="z"/></c:group>`, err: `group "g" has no node "z"`},
		{name: "a group somehow", text: `<node client_id="a"/><c:group name="g" place="near"><c:member client_id="a"/></c:group>`, err: `place="near"`},
		{name: "a group by room", text: `<node client_id="a"/><c:group name="g" place="apart" by="room"><c:member client_id="a"/></c:group>`, err: `by="room"`},
		{name: "a part of nobody", text: `<node client_id="a"><relation type="subnode_of"/></node>`, err: "relation without a client_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Language{}.Compile(context.Background(), []byte(head+c.text+"</rspec>"), languages.Scope{})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if is := c.check(got.Request); !reflect.DeepEqual(is, c.want) {
				t.Errorf("got %v, want %v", is, c.want)
			}
		})
	}
}
