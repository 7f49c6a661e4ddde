package camp

// attribute describes an attribute of a resource type (CAMP 1.1 csd02,
// "Attribute Constraints").
type attribute struct {
	name, kind      string
	required        bool
	mutable         bool
	consumerMutable bool
	about           string
}

// resourceType is a type of resources and its attributes.
type resourceType struct {
	name       string // as typeDefinitions list it
	typ        string // the value of the attribute type
	attributes []attribute
}

const (
	kindURI       = "URI"
	kindString    = "String"
	kindStrings   = "String[]"
	kindTimestamp = "Timestamp"
	kindLink      = "Link"
	kindLinks     = "Link[]"
	kindBoolean   = "Boolean"
	kindState     = "ResourceState"
	kindInteger   = "org.testbed:Integer"
	kindNumber    = "org.testbed:Number"
)

// common are the attributes of every resource.
var common = []attribute{
	{"uri", kindURI, true, false, false, "where the resource is"},
	{"name", kindString, true, true, true, "for people"},
	{"description", kindString, false, true, true, "for people"},
	{"created", kindTimestamp, true, false, false, "when the resource came to be, in UTC"},
	{"tags", kindStrings, false, true, true, "keywords"},
	{"type", kindString, true, false, false, "the type of the resource"},
	{"representationSkew", kindString, false, true, false, "how what is shown relates to what is: CREATING, NONE, UNKNOWN, DESTROYING"},
}

func fixed(name, kind string, required bool, about string) attribute {
	return attribute{name, kind, required, false, false, about}
}

func changing(name, kind string, required bool, about string) attribute {
	return attribute{name, kind, required, true, false, about}
}

func free(name, kind string, required bool, about string) attribute {
	return attribute{name, kind, required, true, true, about}
}

// capability attributes say what a sliver type can give, a template what it
// gives by default, a requirement what is asked for.
func amounts(what string) []attribute {
	return []attribute{
		fixed("org.testbed:cores", kindNumber, false, what+" of processor cores"),
		fixed("org.testbed:memory", kindInteger, false, what+" of memory in MiB"),
		fixed("org.testbed:disk", kindInteger, false, what+" of disk in MiB"),
		fixed("org.testbed:images", kindStrings, false, "images that can be booted"),
	}
}

// resourceTypes are the types that this platform has.
func resourceTypes() []resourceType {
	return []resourceType{
		{"platform", "platform", []attribute{
			fixed("supportedFormatsUri", kindURI, false, "the Formats resource"),
			fixed("extensionsUri", kindURI, true, "the Extensions resource"),
			fixed("typeDefinitionsUri", kindURI, true, "the TypeDefinitions resource"),
			fixed("specificationVersion", kindStrings, true, "versions of the specification"),
			fixed("implementationVersion", kindString, false, "version of this server"),
			changing("assemblyTemplates", kindLinks, false, "deployed applications"),
			changing("assemblies", kindLinks, false, "running applications"),
			changing("platformComponentTemplates", kindLinks, false, "sliver types with their defaults"),
			changing("platformComponentCapabilities", kindLinks, false, "sliver types with what they can give"),
			changing("platformComponents", kindLinks, false, "nodes of the running applications"),
			changing("org.testbed:packages", kindLinks, false, "packages that were uploaded"),
		}},
		{"assemblyTemplate", "assemblyTemplate", []attribute{
			changing("applicationComponentTemplates", kindLinks, false, "its artifacts"),
			fixed("org.testbed:pdpUri", kindURI, false, "the template as a package"),
		}},
		{"applicationComponentTemplate", "applicationComponentTemplate", []attribute{
			free("assemblyTemplate", kindLink, true, "what it is a part of"),
			free("applicationComponentTemplates", kindLinks, false, "artifacts that it uses"),
			free("platformComponentTemplates", kindLinks, false, "sliver types that it uses"),
			free("applicationComponentRequirements", kindLinks, false, "what it needs of other artifacts"),
			free("platformComponentRequirements", kindLinks, false, "what it needs of the platform"),
			fixed("org.testbed:artifactType", kindString, false, "artifact_type of the plan"),
		}},
		{"applicationComponentRequirement", "applicationComponentRequirement", []attribute{
			fixed("org.testbed:requirementType", kindString, false, "requirement_type of the plan"),
			fixed("org.testbed:fulfilledBy", kindLink, false, "the artifact that fulfills it"),
		}},
		{"platformComponentRequirement", "platformComponentRequirement", append(amounts("least amount"),
			fixed("org.testbed:requirementType", kindString, false, "requirement_type of the plan"),
			fixed("org.testbed:count", kindInteger, false, "how many nodes"))},
		{"platformComponentTemplate", "platformComponentTemplate", amounts("usual amount")},
		{"platformComponentCapability", "platformComponentCapability", append(amounts("greatest amount"),
			fixed("org.testbed:hosts", kindInteger, false, "how many hosts make such nodes"))},
		{"assembly", "assembly", []attribute{
			fixed("applicationComponents", kindLinks, true, "its artifacts"),
			fixed("assemblyTemplate", kindLink, true, "what it was made from"),
			changing("resourceState", kindState, true, "where in its life it is"),
			fixed("org.testbed:slice", kindString, false, "the URN of its slice"),
			fixed("org.testbed:pdpUri", kindURI, false, "the assembly as a package"),
			changing("org.testbed:expires", kindTimestamp, false, "when it ends unless it is renewed, in UTC"),
		}},
		{"applicationComponent", "applicationComponent", []attribute{
			fixed("assembly", kindLink, true, "what it is a part of"),
			fixed("applicationComponents", kindLinks, false, "artifacts that it depends on"),
			fixed("platformComponents", kindLinks, false, "nodes that it is on"),
			changing("resourceState", kindState, false, "how its start-up went"),
		}},
		{"platformComponent", "platformComponent", []attribute{
			fixed("externalManagementResource", kindURI, false, "where the node is logged in to"),
			changing("resourceState", kindState, false, "where in its life it is"),
			fixed("org.testbed:sliver", kindString, false, "the URN of its sliver"),
			changing("org.testbed:addresses", kindStrings, false, "addresses of its interfaces"),
		}},
		{"format", "format", []attribute{
			fixed("mimeType", kindString, true, "media type"),
			fixed("version", kindString, false, "version of the format"),
			fixed("documentation", kindURI, true, "what describes it"),
		}},
		{"formats", "types", []attribute{fixed("formatLinks", kindLinks, true, "all formats, JSON first")}},
		{"typeDefinitions", "types", []attribute{fixed("typeDefinitionLinks", kindLinks, true, "all types")}},
		{"typeDefinition", "typeDefinition", []attribute{
			fixed("documentation", kindURI, true, "what describes it"),
			fixed("attributeDefinitionLinks", kindLinks, true, "its attributes"),
		}},
		{"attributeDefinition", "attributeDefinition", []attribute{
			fixed("documentation", kindURI, true, "what describes it"),
			fixed("attributeType", kindString, true, "type of the values"),
			fixed("required", kindBoolean, true, "whether it is always there"),
			fixed("mutable", kindBoolean, true, "whether it can change"),
			fixed("consumerMutable", kindBoolean, true, "whether clients can change it"),
		}},
		{"extension", "extension", []attribute{
			fixed("version", kindString, true, "version of the extension"),
			fixed("documentation", kindURI, false, "what describes it"),
		}},
		{"extensions", "types", []attribute{fixed("extensionLinks", kindLinks, true, "all extensions")}},
		{"org.testbed:package", "org.testbed:package", []attribute{
			fixed("org.testbed:size", kindInteger, true, "bytes"),
			fixed("org.testbed:planName", kindString, true, "the file that is its plan"),
		}},
	}
}

// immutableNames are the types whose names clients cannot change: those of the
// platform's own descriptions.
var immutableNames = map[string]bool{"format": true, "typeDefinition": true, "attributeDefinition": true, "extension": true}

// of lists all attributes of a type, with the common ones.
func (t *resourceType) of() []attribute {
	all := append([]attribute{}, common...)
	if immutableNames[t.name] {
		for i := range all {
			all[i].mutable, all[i].consumerMutable = false, false
		}
	}
	return append(all, t.attributes...)
}

func (t *resourceType) attribute(name string) (attribute, bool) {
	for _, a := range t.of() {
		if a.name == name {
			return a, true
		}
	}
	return attribute{}, false
}

// extension is something that this platform has beyond the specification.
type extension struct{ name, version, about string }

func extensions() []extension {
	return []extension{
		{"org.testbed:packages", "1", "packages are uploaded by POST to the packages of the platform, or to the platform itself, and templates and assemblies are exported at org.testbed:pdpUri"},
		{"org.testbed:testbed", "1", "types of artifacts, requirements and characteristics for nodes and links"},
		{"org.testbed:head", "1", "HEAD is answered wherever GET is"},
	}
}
