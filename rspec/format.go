package rspec

import (
	"fmt"
	"strings"

	"croft/languages"
)

// Format is a version of the RSpec format that Croft reads and writes. The
// two differ in their namespace only: their schemas are the same.
type Format int

// The formats.
const (
	GENI3 Format = iota
	ProtoGENI2
)

// MediaType labels RSpecs in the store.
const MediaType = "application/rspec+xml"

// Namespaces of the extensions that Croft reads or writes.
const (
	nsXSI           = "http://www.w3.org/2001/XMLSchema-instance"
	nsXML           = "http://www.w3.org/XML/1998/namespace"
	nsUser          = "http://www.geni.net/resources/rspec/ext/user/1"
	nsOpstate       = "http://www.geni.net/resources/rspec/ext/opstate/1"
	nsSharedVLAN    = "http://www.geni.net/resources/rspec/ext/shared-vlan/1"
	nsSharedVLANOld = "http://www.protogeni.net/resources/rspec/ext/shared-vlan/1"
	nsEmulab        = "http://www.protogeni.net/resources/rspec/ext/emulab/1"
	nsSiteInfo      = "http://www.protogeni.net/resources/rspec/ext/site-info/1"
	nsDelay         = "http://www.protogeni.net/resources/rspec/ext/delay/1"
	nsOpenFlow3     = "http://www.geni.net/resources/rspec/ext/openflow/3"
	nsOpenFlow4     = "http://www.geni.net/resources/rspec/ext/openflow/4"
	nsStitch        = "http://hpn.east.isi.edu/rspec/ext/stitch/0.1/"
	nsProxy         = "http://jfed.iminds.be/proxy/1.0"
	// nsCroft is Croft's own: of what requests want (see wants.go) and manifests
	// tell that no other has a name for.
	nsCroft = "urn:x-croft:rspec:1"
)

// Namespace is the XML namespace of the format's elements.
func (f Format) Namespace() string {
	if f == ProtoGENI2 {
		return "http://www.protogeni.net/resources/rspec/2"
	}
	return "http://www.geni.net/resources/rspec/3"
}

// Version is the format as GetVersion lists it for requests.
func (f Format) Version() languages.Version { return f.version("request") }

func (f Format) version(schema string) languages.Version {
	v := languages.Version{
		Type: "GENI", Version: "3",
		Namespace: f.Namespace(),
		Schema:    f.Namespace() + "/" + schema + ".xsd",
	}
	switch schema {
	case "request":
		v.Extensions = []string{nsEmulab, nsSharedVLAN, nsCroft}
	case "ad":
		v.Extensions = []string{nsOpstate, nsSharedVLAN, nsEmulab, nsSiteInfo}
	case "manifest":
		v.Extensions = []string{nsUser, nsProxy}
	}
	if f == ProtoGENI2 {
		v.Type, v.Version = "ProtoGENI", "2"
	}
	return v
}

// String writes the format as "GENI 3".
func (f Format) String() string {
	v := f.Version()
	return v.Type + " " + v.Version
}

// FormatOf returns the format that a caller names by type and version, as in
// the option geni_rspec_version.
func FormatOf(typ, version string) (Format, bool) {
	for _, f := range formats() {
		if f.Version().Is(strings.TrimSpace(typ), strings.TrimSpace(version)) {
			return f, true
		}
	}
	return 0, false
}

func formats() []Format { return []Format{GENI3, ProtoGENI2} }

func versions() []languages.Version {
	var vs []languages.Version
	for _, f := range formats() {
		vs = append(vs, f.Version())
	}
	return vs
}

// formatOfNamespace tells the format by the namespace of a root element.
func formatOfNamespace(ns string) (Format, bool) {
	for _, f := range formats() {
		if f.Namespace() == ns {
			return f, true
		}
	}
	return 0, false
}

// foundInstead says what a root element that is of no format of ours seems to
// be.
func foundInstead(tag, ns string) string {
	switch {
	case tag != "rspec":
		return fmt.Sprintf("an SFA RSpec (root element %s)", tag)
	case ns == "":
		return `an rspec element in no namespace (want xmlns="` + GENI3.Namespace() + `")`
	}
	for _, v := range []string{"0.1", "0.2"} {
		if strings.Contains(ns, "protogeni.net/resources/rspec/"+v) {
			return "ProtoGENI " + v
		}
	}
	if strings.HasPrefix(ns, "http://www.geni.net/resource") {
		return fmt.Sprintf("an rspec in the namespace %s (GENI 3 is %s)", ns, GENI3.Namespace())
	}
	return fmt.Sprintf("an rspec in the namespace %s", ns)
}
