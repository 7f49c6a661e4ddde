package inventory

import (
	"regexp"

	"croft/capacity"
	"croft/urn"
)

// The file as it is written. The tables of members are the format: the loader
// and the schema both follow from them.

type fileDecl struct {
	authority     field[word]
	manager       field[urn.URN]
	aliases       field[[]urn.URN]
	sites         field[[]placed[siteDecl]]
	images        field[[]placed[imageDecl]]
	sliverTypes   field[[]placed[sliverTypeDecl]]
	hardwareTypes field[[]placed[hardwareTypeDecl]]
	hosts         field[[]placed[hostDecl]]
	switches      field[[]placed[switchDecl]]
	cables        field[[]cableDecl]
	trunks        field[[]placed[trunkDecl]]
	sharedVLANs   field[[]placed[sharedVLANDecl]]
	external      field[[]placed[externalDecl]]
	pools         field[placed[poolsDecl]]
	features      field[[]placed[featureTypeDecl]]
	policies      field[[]placed[policyDecl]]
}

// featureTypeDecl says how a feature of hosts counts.
type featureTypeDecl struct {
	name, costs field[word]
}

// featureDecl is a feature of a host: its name alone, or with more about it.
type featureDecl struct {
	name           field[word]
	weight, amount field[float64]
}

type policyDecl struct {
	sliverType, hardwareType, feature field[word]
	most                              field[float64]
	authorities                       field[[]word]
}

type siteDecl struct {
	name, country       field[word]
	latitude, longitude field[float64]
}

type imageDecl struct {
	name         field[word]
	urn          field[urn.URN]
	description  field[word]
	os, version  field[word]
	distribution field[word]
	architecture field[word]
	source, url  field[word]
	command      field[word]
}

type sliverTypeDecl struct {
	name         field[word]
	aliases      field[[]word]
	driver       field[word]
	cores        field[float64]
	memory, disk field[capacity.MiB]
	gpus         field[float64]
	images       field[[]word]
	wholeHost    field[bool]
	shaping      field[bool]
	delay        field[bool]
}

// offerDecl is what a host offers, or a hardware type in its stead.
type offerDecl struct {
	site              field[word]
	sliverTypes       field[[]word]
	images            field[[]word]
	cores             field[float64]
	memory, disk      field[capacity.MiB]
	gpus              field[float64]
	architecture      field[word]
	exclusive, shared field[bool]
	maxSlivers        field[float64]
	typeLimits        field[map[string]int]
	features          field[[]featureDecl]
	internal          field[capacity.Kbps]
	underlay          field[capacity.Kbps]
	interfaces        field[[]placed[interfaceDecl]]
	properties        field[map[string]string]
	access            field[placed[accessDecl]]
}

type hardwareTypeDecl struct {
	name        field[word]
	description field[word]
	offer       offerDecl
}

type hostDecl struct {
	name          field[word]
	urn           field[urn.URN]
	hardwareTypes field[[]word]
	outOfService  field[word]
	parent        field[word]
	offer         offerDecl
}

// accessDecl is how a manager gets at a machine of its own.
type accessDecl struct {
	address   field[word]
	port      field[float64]
	user      field[word]
	hostKeys  field[[]word]
	scratch   field[[]word]
	bootLimit field[float64]
	image     field[word]
	reimage   field[placed[reimageDecl]]
	power     field[placed[powerDecl]]
}

type reimageDecl struct {
	command field[[]word]
	limit   field[float64]
	pxe     field[bool]
	atEnd   field[bool]
}

type powerDecl struct {
	protocol      field[word]
	address       field[word]
	user          field[word]
	passwordFile  field[word]
	authorityFile field[word]
	system        field[word]
}

type interfaceDecl struct {
	name  field[word]
	urn   field[urn.URN]
	speed field[capacity.Kbps]
	role  field[word]
	mac   field[word]
}

type switchDecl struct {
	name          field[word]
	urn           field[urn.URN]
	site          field[word]
	hardwareTypes field[[]word]
}

// cableDecl is one of two ways to tell of cables.
type cableDecl struct {
	rule *placed[cableRuleDecl]
	pair *placed[cablePairDecl]
}

type cableRuleDecl struct {
	hosts, interfaces field[word]
	switches, ports   field[word]
	capacity          field[capacity.Kbps]
}

type cablePairDecl struct {
	ends     field[[]word]
	name     field[word]
	urn      field[urn.URN]
	capacity field[capacity.Kbps]
}

type trunkDecl struct {
	between  field[[]word]
	name     field[word]
	urn      field[urn.URN]
	capacity field[capacity.Kbps]
	count    field[float64]
}

type sharedVLANDecl struct {
	name        field[word]
	tag         field[float64]
	restricted  field[bool]
	authorities field[[]word]
}

type externalDecl struct {
	iface, manager field[urn.URN]
}

type poolsDecl struct {
	addresses field[word]
	vlans     field[[]word]
	vnis      field[[]word]
}

var (
	authorityPattern = regexp.MustCompile(`^[^+\s<>"&]+$`)
	authorityName    = matching(authorityPattern, "the name of an authority", "such as testbed.example.org")
	coresKind        = numberBetween(0.001, 1_000_000, false, "a number of cores")
	countKind        = numberBetween(1, 100_000, true, "a whole number")
	roleName         = matching(regexp.MustCompile(`^(experimental|control)$`), "experimental or control", "")
	networkName      = matching(regexp.MustCompile(`^[0-9A-Fa-f.:]+/[0-9]{1,3}$`), "a network", "such as "+DefaultAddresses)
	vnis             = matching(regexp.MustCompile(`^[0-9]{1,8}(-[0-9]{1,8})?$`), "VXLAN identifiers", "such as 5000-5999")
	vlanTags         = matching(regexp.MustCompile(`^[0-9]{1,4}(-[0-9]{1,4})?$`), "VLAN tags", "such as 100-199 or 300")
	endName          = matching(regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9._-]*(:[A-Za-z0-9_][A-Za-z0-9._/:+@-]*)?|urn:[^\s<>"]+)$`),
		"the end of a cable", "host:interface, switch:port, or the URN of an external interface")
	trunkEndName = matching(regexp.MustCompile(`^([A-Za-z0-9._-]|\[[0-9, -]+\])+(:[A-Za-z0-9_][A-Za-z0-9._/:+@-]*)?$`),
		"a switch", "switch, switch:port, or a range such as leaf[1-8]")
	nodeRanges = matching(regexp.MustCompile(`^([A-Za-z0-9._-]|\[[0-9]+(-[0-9]+)?(, ?[0-9]+(-[0-9]+)?)*\])+$`),
		"a name or a range of names", "such as pc1 or pc[001-160]")
)

var fileMembers = []member[fileDecl]{
	must(has("authority", authorityName, func(d *fileDecl) *field[word] { return &d.authority },
		"Authority", "The name of this testbed in URNs, such as testbed.example.org.")),
	has("manager", identifier, func(d *fileDecl) *field[urn.URN] { return &d.manager },
		"Component manager", "The URN of this aggregate. Left out, it is urn:publicid:IDN+AUTHORITY+authority+cm; +am is understood as well."),
	has("manager_aliases", oneOrMore(identifier), func(d *fileDecl) *field[[]urn.URN] { return &d.aliases },
		"Further names", "URNs by which requests may name this component manager besides."),
	has("sites", listOf(object("a site", siteMembers), "- name: campus"), func(d *fileDecl) *field[[]placed[siteDecl]] { return &d.sites },
		"Sites", "The places where hosts stand."),
	has("images", listOf(object("an image", imageMembers), "- name: debian12"), func(d *fileDecl) *field[[]placed[imageDecl]] { return &d.images },
		"Images", "The systems that nodes can boot."),
	has("sliver_types", listOf(object("a sliver type", sliverTypeMembers), "- name: namespace"), func(d *fileDecl) *field[[]placed[sliverTypeDecl]] { return &d.sliverTypes },
		"Sliver types", "The ways to make nodes. The built-in one, namespace, is there without being declared; declare it to change its defaults."),
	has("hardware_types", listOf(object("a hardware type", hardwareTypeMembers), "- name: d430"), func(d *fileDecl) *field[[]placed[hardwareTypeDecl]] { return &d.hardwareTypes },
		"Hardware types", "Models of machines. What a host does not say itself, it takes from the first of its hardware types that says it."),
	must(has("hosts", listOf(object("a host", hostMembers), "- name: host1"), func(d *fileDecl) *field[[]placed[hostDecl]] { return &d.hosts },
		"Hosts", "What nodes are placed on: machines, or shares of machines.")),
	has("switches", listOf(object("a switch", switchMembers), "- name: switch1"), func(d *fileDecl) *field[[]placed[switchDecl]] { return &d.switches },
		"Switches", "What cables and trunks end on."),
	has("cables", listOf(cableKind, `- {hosts: "pc[1-8]", interfaces: eth0, switch: switch1}`), func(d *fileDecl) *field[[]cableDecl] { return &d.cables },
		"Cables", "Which interface of which host ends where, by rule or one by one."),
	has("trunks", listOf(object("a trunk", trunkMembers), "- {between: [switch1, switch2], capacity: 10 Gbps}"), func(d *fileDecl) *field[[]placed[trunkDecl]] { return &d.trunks },
		"Trunks", "The connections between switches."),
	has("shared_vlans", listOf(object("a shared VLAN", sharedVLANMembers), "- name: campus-openflow"), func(d *fileDecl) *field[[]placed[sharedVLANDecl]] { return &d.sharedVLANs },
		"Shared VLANs", "Networks that several slices can have ports on."),
	has("external_refs", listOf(object("an external reference", externalMembers), "- interface: urn:…"), func(d *fileDecl) *field[[]placed[externalDecl]] { return &d.external },
		"External references", "Interfaces of other aggregates that this testbed is wired to."),
	has("features", listOf(object("a feature", featureTypeMembers), "- {name: licence, costs: first}"), func(d *fileDecl) *field[[]placed[featureTypeDecl]] { return &d.features },
		"Features", "How features of hosts count that do not count for each node. Others need not be declared."),
	has("policies", listOf(object("a policy", policyMembers), "- {hardware_type: d710, most: 4}"), func(d *fileDecl) *field[[]placed[policyDecl]] { return &d.policies },
		"Policies", "How many nodes of a kind a slice may have."),
	has("pools", object("pools", poolsMembers), func(d *fileDecl) *field[placed[poolsDecl]] { return &d.pools },
		"Pools", "What links draw on."),
}

var siteMembers = []member[siteDecl]{
	must(has("name", label, func(d *siteDecl) *field[word] { return &d.name },
		"Name", "What hosts call the site.")),
	has("country", label, func(d *siteDecl) *field[word] { return &d.country },
		"Country", "Two letters of ISO 3166, such as BE, or a name."),
	has("latitude", numberBetween(-90, 90, false, "a latitude in degrees"), func(d *siteDecl) *field[float64] { return &d.latitude },
		"Latitude", "In degrees, north positive."),
	has("longitude", numberBetween(-180, 180, false, "a longitude in degrees"), func(d *siteDecl) *field[float64] { return &d.longitude },
		"Longitude", "In degrees, east positive."),
}

var imageMembers = []member[imageDecl]{
	must(has("name", port, func(d *imageDecl) *field[word] { return &d.name },
		"Name", "The short name that requests may use. The URN is derived from it.")),
	has("urn", identifier, func(d *imageDecl) *field[urn.URN] { return &d.urn },
		"URN", "Only if it is not urn:publicid:IDN+AUTHORITY+image+NAME."),
	has("description", prose, func(d *imageDecl) *field[word] { return &d.description },
		"Description", "What experimenters read in the advertisement."),
	has("os", label, func(d *imageDecl) *field[word] { return &d.os },
		"Operating system", "Such as Debian."),
	has("version", label, func(d *imageDecl) *field[word] { return &d.version },
		"Version of the system", "Such as 12."),
	has("distribution", label, func(d *imageDecl) *field[word] { return &d.distribution },
		"Distribution", "Such as Debian, where os is Linux. Left out, it is what os says."),
	has("architecture", label, func(d *imageDecl) *field[word] { return &d.architecture },
		"Architecture", "Such as x86_64."),
	has("source", prose, func(d *imageDecl) *field[word] { return &d.source },
		"Source", "What the driver boots: for the namespace driver, a directory with a root file system."),
	has("url", symbol, func(d *imageDecl) *field[word] { return &d.url },
		"URL", "By which requests may name the image as well."),
	has("command", prose, func(d *imageDecl) *field[word] { return &d.command },
		"Command", "What the image is for: a service that requests start without saying how runs it, by /bin/sh -c."),
}

var sliverTypeMembers = []member[sliverTypeDecl]{
	must(has("name", symbol, func(d *sliverTypeDecl) *field[word] { return &d.name },
		"Name", "What requests call the type, such as namespace or raw-pc.")),
	has("aliases", oneOrMore(symbol), func(d *sliverTypeDecl) *field[[]word] { return &d.aliases },
		"Aliases", "What requests may call it besides, such as default-vm."),
	has("driver", plain, func(d *sliverTypeDecl) *field[word] { return &d.driver },
		"Driver", "What makes such nodes: namespace, simulated, … The type namespace has the driver of its name."),
	has("cores", coresKind, func(d *sliverTypeDecl) *field[float64] { return &d.cores },
		"Cores", "What a node takes that does not say. Fractions are cores shared with others."),
	has("memory", sizeKind, func(d *sliverTypeDecl) *field[capacity.MiB] { return &d.memory },
		"Memory", "What a node takes that does not say."),
	has("disk", sizeKind, func(d *sliverTypeDecl) *field[capacity.MiB] { return &d.disk },
		"Disk", "What a node takes that does not say."),
	has("gpus", countKind, func(d *sliverTypeDecl) *field[float64] { return &d.gpus },
		"GPUs", "What a node takes that does not say. Left out: none."),
	has("images", oneOrMore(symbol), func(d *sliverTypeDecl) *field[[]word] { return &d.images },
		"Images", "Names of the images that such nodes can boot; the first is the default."),
	has("whole_host", truth, func(d *sliverTypeDecl) *field[bool] { return &d.wholeHost },
		"Whole host", "Whether each node takes a host of its own. Left out, this is so for raw-pc only."),
	has("shaping", truth, func(d *sliverTypeDecl) *field[bool] { return &d.shaping },
		"Shaping", "Whether links of such nodes can be given a rate, a latency and a loss."),
	has("delay", truth, func(d *sliverTypeDecl) *field[bool] { return &d.delay },
		"Delay node", "Whether such a node can stand between the ends of a link that cannot be shaped otherwise: the mapper puts it in, and it takes an interface for each side."),
}

var offerMembers = []member[offerDecl]{
	has("site", label, func(d *offerDecl) *field[word] { return &d.site },
		"Site", "Where it stands: the name of a site. Needed only if there are several."),
	has("sliver_types", oneOrMore(symbol), func(d *offerDecl) *field[[]word] { return &d.sliverTypes },
		"Sliver types", "The types of node that can be made here; the first is the default. Left out: namespace."),
	has("images", oneOrMore(symbol), func(d *offerDecl) *field[[]word] { return &d.images },
		"Images", "Those of the sliver types' images that can be booted here. Left out: all."),
	has("cores", coresKind, func(d *offerDecl) *field[float64] { return &d.cores },
		"Cores", "What there is to give. Left out, cores are not counted."),
	has("memory", sizeKind, func(d *offerDecl) *field[capacity.MiB] { return &d.memory },
		"Memory", "What there is to give. Left out, memory is not counted."),
	has("disk", sizeKind, func(d *offerDecl) *field[capacity.MiB] { return &d.disk },
		"Disk", "What there is to give. Left out, disk is not counted."),
	has("gpus", countKind, func(d *offerDecl) *field[float64] { return &d.gpus },
		"GPUs", "What there is to give. Left out, there are none."),
	has("architecture", label, func(d *offerDecl) *field[word] { return &d.architecture },
		"Architecture", "Such as x86_64."),
	has("exclusive", truth, func(d *offerDecl) *field[bool] { return &d.exclusive },
		"Exclusive", "Whether one slice can have the whole of it. With neither exclusive nor shared, both hold; with one of them, the other is its opposite."),
	has("shared", truth, func(d *offerDecl) *field[bool] { return &d.shared },
		"Shared", "Whether several slices can have nodes on it."),
	has("max_slivers", countKind, func(d *offerDecl) *field[float64] { return &d.maxSlivers },
		"Most slivers", "The most nodes on it. Left out, only what there is to give counts."),
	has("type_limits", countsKind, func(d *offerDecl) *field[map[string]int] { return &d.typeLimits },
		"Type limits", "The most nodes of a sliver type on it, such as {namespace: 10}."),
	has("features", oneOrMore(featureKind), func(d *offerDecl) *field[[]featureDecl] { return &d.features },
		"Features", "What nodes can want of it by name. One with a weight is spared for those who ask; from 1 on, nobody else gets the host. One with an amount is used up."),
	has("internal_capacity", rateKind, func(d *offerDecl) *field[capacity.Kbps] { return &d.internal },
		"Internal capacity", "What all links between nodes on it carry together. Left out, it is not counted."),
	has("underlay_capacity", rateKind, func(d *offerDecl) *field[capacity.Kbps] { return &d.underlay },
		"Underlay capacity", "What all links between nodes on it and nodes on other hosts carry together, over the network that it has without declaring interfaces. Left out, it is not counted."),
	has("interfaces", listOf(object("an interface", interfaceMembers), `- name: eth0`), func(d *offerDecl) *field[[]placed[interfaceDecl]] { return &d.interfaces },
		"Interfaces", "Its network interfaces."),
	has("properties", facts, func(d *offerDecl) *field[map[string]string] { return &d.properties },
		"Properties", "Anything else to be known of it, by name."),
	has("access", object("an access", accessMembers), func(d *offerDecl) *field[placed[accessDecl]] { return &d.access },
		"Access", "How the manager gets at the machine, for the driver ssh. {name} in its texts stands for the host's name. Advertisements tell none of it."),
}

var hardwareTypeMembers = append([]member[hardwareTypeDecl]{
	must(has("name", label, func(d *hardwareTypeDecl) *field[word] { return &d.name },
		"Name", "What hosts and requests call the type, such as d430.")),
	has("description", prose, func(d *hardwareTypeDecl) *field[word] { return &d.description },
		"Description", "What kind of machine it is."),
}, inside(offerMembers, func(d *hardwareTypeDecl) *offerDecl { return &d.offer })...)

var hostMembers = append([]member[hostDecl]{
	must(has("name", nodeRanges, func(d *hostDecl) *field[word] { return &d.name },
		"Name", "A name, or a range of names such as pc[001-160].")),
	has("urn", identifier, func(d *hostDecl) *field[urn.URN] { return &d.urn },
		"URN", "Only if it is not urn:publicid:IDN+AUTHORITY+node+NAME."),
	has("hardware_types", oneOrMore(label), func(d *hostDecl) *field[[]word] { return &d.hardwareTypes },
		"Hardware types", "What kind of machine it is; those declared under hardware_types give it what it does not say itself."),
	has("out_of_service", prose, func(d *hostDecl) *field[word] { return &d.outOfService },
		"Out of service", "Why no new nodes are placed here. Nodes that are here stay."),
	has("parent", plain, func(d *hostDecl) *field[word] { return &d.parent },
		"Parent", "The host that this one is a part of, such as a card in it."),
}, inside(offerMembers, func(d *hostDecl) *offerDecl { return &d.offer })...)

var interfaceMembers = []member[interfaceDecl]{
	must(has("name", ranges, func(d *interfaceDecl) *field[word] { return &d.name },
		"Name", "A name, or a range of names such as eth[0-3].")),
	has("urn", identifier, func(d *interfaceDecl) *field[urn.URN] { return &d.urn },
		"URN", "Only if it is not urn:publicid:IDN+AUTHORITY+interface+HOST:NAME."),
	has("speed", rateKind, func(d *interfaceDecl) *field[capacity.Kbps] { return &d.speed },
		"Speed", "Such as 10 Gbps."),
	has("role", roleName, func(d *interfaceDecl) *field[word] { return &d.role },
		"Role", "experimental (the default), or control for the interface that logins take and that no experiment gets."),
	has("mac", hardwareAddress, func(d *interfaceDecl) *field[word] { return &d.mac },
		"MAC", "Its hardware address, such as 0c:c4:7a:12:34:56, by which it is found on a machine given out whole. Left out, it is found by its name."),
}

var switchMembers = []member[switchDecl]{
	must(has("name", nodeRanges, func(d *switchDecl) *field[word] { return &d.name },
		"Name", "A name, or a range of names such as leaf[1-8].")),
	has("urn", identifier, func(d *switchDecl) *field[urn.URN] { return &d.urn },
		"URN", "Only if it is not urn:publicid:IDN+AUTHORITY+node+NAME."),
	has("site", label, func(d *switchDecl) *field[word] { return &d.site },
		"Site", "Where it stands: the name of a site."),
	has("hardware_types", oneOrMore(label), func(d *switchDecl) *field[[]word] { return &d.hardwareTypes },
		"Hardware types", "What kind of switch it is."),
}

var cableRuleMembers = []member[cableRuleDecl]{
	must(has("hosts", nodeRanges, func(d *cableRuleDecl) *field[word] { return &d.hosts },
		"Hosts", "The hosts that the rule is about, such as pc[001-160].")),
	must(has("interfaces", ranges, func(d *cableRuleDecl) *field[word] { return &d.interfaces },
		"Interfaces", "The interfaces of each of them, such as eth[0-3].")),
	must(has("switch", nodeRanges, func(d *cableRuleDecl) *field[word] { return &d.switches },
		"Switch", "Where they end. With a range of switches, the hosts are dealt out in order, equally many to each.")),
	has("ports", ranges, func(d *cableRuleDecl) *field[word] { return &d.ports },
		"Ports", "The ports of each switch, taken in order. Left out, they are named after host and interface."),
	has("capacity", rateKind, func(d *cableRuleDecl) *field[capacity.Kbps] { return &d.capacity },
		"Capacity", "Left out, the speed of the interface."),
}

var cablePairMembers = []member[cablePairDecl]{
	must(has("ends", pairOf(endName, `["pc1:eth0", "switch1:Gi1/1"]`), func(d *cablePairDecl) *field[[]word] { return &d.ends },
		"Ends", "host:interface and switch:port, or two of either, or the URN of an external interface for one of them.")),
	has("name", port, func(d *cablePairDecl) *field[word] { return &d.name },
		"Name", "Left out, it is made of the ends."),
	has("urn", identifier, func(d *cablePairDecl) *field[urn.URN] { return &d.urn },
		"URN", "Only if it is not urn:publicid:IDN+AUTHORITY+link+NAME."),
	has("capacity", rateKind, func(d *cablePairDecl) *field[capacity.Kbps] { return &d.capacity },
		"Capacity", "Left out, the speed of the slower interface."),
}

// cableKind tells the two ways to declare cables apart by the field ends.
var cableKind = kind[cableDecl]{
	schema: func() schema {
		return schema{"oneOf": []any{
			object("a cable rule", cableRuleMembers).schema(),
			object("a cable", cablePairMembers).schema(),
		}}
	},
	read: func(p *problems, v value, path string) (cableDecl, bool) {
		for _, e := range v.entries {
			if e.key == "ends" {
				pair, ok := object("a cable", cablePairMembers).read(p, v, path)
				return cableDecl{pair: &pair}, ok
			}
		}
		rule, ok := object("a cable rule", cableRuleMembers).read(p, v, path)
		return cableDecl{rule: &rule}, ok
	},
}

var trunkMembers = []member[trunkDecl]{
	must(has("between", pairOf(trunkEndName, "[switch1, switch2]"), func(d *trunkDecl) *field[[]word] { return &d.between },
		"Between", "Two switches. With ranges, every switch of the one has a trunk to every switch of the other.")),
	has("name", port, func(d *trunkDecl) *field[word] { return &d.name },
		"Name", "Left out, it is made of the ends."),
	has("urn", identifier, func(d *trunkDecl) *field[urn.URN] { return &d.urn },
		"URN", "Only if it is not urn:publicid:IDN+AUTHORITY+link+NAME."),
	has("capacity", rateKind, func(d *trunkDecl) *field[capacity.Kbps] { return &d.capacity },
		"Capacity", "Of each direction of each of them, such as 10 Gbps."),
	has("count", numberBetween(1, 1000, true, "a whole number"), func(d *trunkDecl) *field[float64] { return &d.count },
		"Count", "How many there are in parallel. Left out: 1."),
}

var sharedVLANMembers = []member[sharedVLANDecl]{
	must(has("name", label, func(d *sharedVLANDecl) *field[word] { return &d.name },
		"Name", "What requests call it.")),
	has("tag", numberBetween(1, 4094, true, "a VLAN tag"), func(d *sharedVLANDecl) *field[float64] { return &d.tag },
		"Tag", "Its VLAN tag, if it is fixed."),
	has("restricted", truth, func(d *sharedVLANDecl) *field[bool] { return &d.restricted },
		"Restricted", "Whether only those may use it whom the operator allows."),
	has("authorities", oneOrMore(authorityName), func(d *sharedVLANDecl) *field[[]word] { return &d.authorities },
		"Authorities", "Whose slices may use it if it is restricted, such as example.org:project."),
}

var externalMembers = []member[externalDecl]{
	must(has("interface", identifier, func(d *externalDecl) *field[urn.URN] { return &d.iface },
		"Interface", "The URN of the interface at the other aggregate.")),
	must(has("manager", identifier, func(d *externalDecl) *field[urn.URN] { return &d.manager },
		"Manager", "The component manager of the other aggregate.")),
}

var poolsMembers = []member[poolsDecl]{
	has("addresses", networkName, func(d *poolsDecl) *field[word] { return &d.addresses },
		"Addresses", "The network that addresses are taken from when a request gives none. Left out: "+DefaultAddresses+"."),
	has("vlans", oneOrMore(vlanTags), func(d *poolsDecl) *field[[]word] { return &d.vlans },
		"VLAN tags", "Those that links may be given, such as 100-199."),
	has("vnis", oneOrMore(vnis), func(d *poolsDecl) *field[[]word] { return &d.vnis },
		"VXLAN identifiers", "Those that links between machines may be given, such as 5000-5999; no two managers on one network may have the same. Left out: 4096-8191."),
}

var fileKind = object("an inventory", fileMembers)
