package camp

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"croft/languages/camp"
	"croft/request"
	"croft/rest"
)

// resource is a resource as the caller sees it.
type resource struct {
	path       string
	typ        *resourceType
	attributes map[string]any

	template *templateRecord // of assembly templates
	assembly *assembly       // of assemblies
	pack     *packageRecord  // of packages
}

// link is a Link to a resource (csd02, "Link").
type link struct {
	Href       string `json:"href"`
	TargetName string `json:"targetName"`
}

func (c *call) link(path, name string) link { return link{c.url(c.r, path), name} }

// skew values.
const (
	creating   = "CREATING"
	none       = "NONE"
	unknown    = "UNKNOWN"
	destroying = "DESTROYING"
)

// methods are those that the resource has in the state that it is in (csd02,
// table 1).
func (r *resource) methods() []string {
	switch r.attributes["representationSkew"] {
	case creating:
		return []string{"GET", "HEAD", "DELETE"}
	case destroying:
		return []string{"GET", "HEAD"}
	}
	all := []string{"GET", "HEAD", "PUT", "PATCH"}
	switch {
	case r.template != nil, r.assembly != nil:
		all = append(all, "POST", "DELETE")
	case r.pack != nil:
		all = append(all, "DELETE")
	}
	return all
}

// make makes a resource, with what the caller has changed of it.
func (c *call) make(path, typ, name, description string, created time.Time, own map[string]any) (*resource, error) {
	t := c.types[typ]
	r := &resource{path: path, typ: t, attributes: map[string]any{
		"uri": c.url(c.r, path), "name": name, "type": t.typ, "created": created.UTC().Format(time.RFC3339),
	}}
	if description != "" {
		r.attributes["description"] = description
	}
	for k, v := range own {
		if list, isList := v.([]link); isList && len(list) == 0 {
			if a, _ := t.attribute(k); !a.required {
				continue
			}
		}
		if v != nil && v != "" {
			r.attributes[k] = v
		}
	}
	all, err := c.edits()
	if err != nil {
		return nil, err
	}
	for k, v := range all[path] {
		if v == nil {
			delete(r.attributes, k)
		} else {
			r.attributes[k] = v
		}
	}
	return r, nil
}

func missing(path string) error {
	return rest.Refuse(http.StatusNotFound, "there is no resource %.200q, or it is somebody else's", path)
}

// find finds a resource by its path.
func (c *call) find(path string) (*resource, error) {
	part := strings.Split(path, "/")
	switch {
	case path == "platform":
		return c.platform()
	case path == "formats":
		return c.make(path, "formats", "formats", "Formats of representations", c.created, map[string]any{"formatLinks": []link{c.link("formats/json", "JSON")}})
	case path == "formats/json":
		return c.make(path, "format", "JSON", "JavaScript Object Notation", c.created, map[string]any{
			"mimeType": "application/json", "version": "RFC4627", "documentation": "http://www.ietf.org/rfc/rfc4627.txt"})
	case path == "typeDefinitions":
		var links []link
		for _, name := range c.typeNames() {
			links = append(links, c.link("typeDefinitions/"+name, name))
		}
		return c.make(path, "typeDefinitions", "typeDefinitions", "Types of resources", c.created, map[string]any{"typeDefinitionLinks": links})
	case len(part) == 2 && part[0] == "typeDefinitions" && c.types[part[1]] != nil:
		var links []link
		for _, a := range c.types[part[1]].of() {
			links = append(links, c.link("attributeDefinitions/"+part[1]+"/"+a.name, a.name))
		}
		return c.make(path, "typeDefinition", part[1], "", c.created, map[string]any{"documentation": specification, "attributeDefinitionLinks": links})
	case len(part) == 3 && part[0] == "attributeDefinitions" && c.types[part[1]] != nil:
		a, ok := c.types[part[1]].attribute(part[2])
		if !ok {
			return nil, missing(path)
		}
		return c.make(path, "attributeDefinition", a.name, a.about, c.created, map[string]any{"documentation": specification,
			"attributeType": a.kind, "required": a.required, "mutable": a.mutable, "consumerMutable": a.consumerMutable})
	case path == "extensions":
		var links []link
		for _, e := range extensions() {
			links = append(links, c.link("extensions/"+e.name, e.name))
		}
		return c.make(path, "extensions", "extensions", "What this platform has beyond the specification", c.created, map[string]any{"extensionLinks": links})
	case len(part) == 2 && part[0] == "extensions":
		for _, e := range extensions() {
			if e.name == part[1] {
				return c.make(path, "extension", e.name, e.about, c.created, map[string]any{"version": e.version})
			}
		}
	case len(part) == 2 && (part[0] == "platformComponentTemplates" || part[0] == "platformComponentCapabilities"):
		return c.sliverType(path, part[0], part[1])
	case len(part) == 2 && part[0] == "packages":
		return c.packageResource(part[1])
	case len(part) >= 2 && strings.HasPrefix(part[0], "assembly") || part[0] == "applicationComponentTemplates" ||
		part[0] == "applicationComponentRequirements" || part[0] == "platformComponentRequirements":
		return c.ofTemplate(path, part)
	case part[0] == "assemblies" || part[0] == "applicationComponents" || part[0] == "platformComponents":
		return c.ofAssembly(path, part)
	}
	return nil, missing(path)
}

// specification is where the types that it defines are documented.
const specification = "http://docs.oasis-open.org/camp/camp-spec/v1.1/camp-spec-v1.1.html"

func (c *call) typeNames() []string {
	var names []string
	for name := range c.types {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (c *call) platform() (*resource, error) {
	own := map[string]any{
		"supportedFormatsUri": c.url(c.r, "formats"), "extensionsUri": c.url(c.r, "extensions"), "typeDefinitionsUri": c.url(c.r, "typeDefinitions"),
		"specificationVersion": []string{"1.1"}, "implementationVersion": c.Version,
	}
	var templates, capabilities []link
	for _, t := range c.Service.Inventory().Offered() {
		templates = append(templates, c.link("platformComponentTemplates/"+string(t.Name), string(t.Name)))
		capabilities = append(capabilities, c.link("platformComponentCapabilities/"+string(t.Name), string(t.Name)))
	}
	own["platformComponentTemplates"], own["platformComponentCapabilities"] = templates, capabilities
	var list []link
	for _, id := range c.names("template") {
		if t, err := c.template(id); err == nil {
			list = append(list, c.link("assemblyTemplates/"+id, c.named("assemblyTemplates/"+id, t.Plan.Name)))
		}
	}
	templateLinks := list
	list = nil
	var components []link
	made, derived, err := c.assemblyIDs()
	if err != nil {
		return nil, err
	}
	if err := c.tidy(derived); err != nil {
		return nil, err
	}
	for _, id := range append(made, derived...) {
		a, err := c.assembly(id)
		if err != nil {
			continue
		}
		if a.derived {
			path := "assemblyTemplates/" + id
			templateLinks = append(templateLinks, c.link(path, c.named(path, a.Name)))
		}
		list = append(list, c.link("assemblies/"+id, c.named("assemblies/"+id, a.Name)))
		components = append(components, a.components(c)...)
	}
	own["assemblies"], own["platformComponents"], own["assemblyTemplates"] = list, components, templateLinks
	list = nil
	for _, id := range c.names("package") {
		list = append(list, c.link("packages/"+id, id))
	}
	own["org.testbed:packages"] = list
	return c.make("platform", "platform", string(c.Service.Manager().Authority.Top()), "Nodes and links of a testbed as a platform", c.created, own)
}

// named is the name of a resource, which its owner may have changed.
func (c *call) named(path, name string) string {
	if all, err := c.edits(); err == nil {
		if changed, ok := all[path]["name"].(string); ok {
			return changed
		}
	}
	return name
}

// names lists the caller's records of a kind.
func (c *call) names(kind string) []string {
	all, err := c.Records.List(c.owner)
	if err != nil {
		c.Log.Error("reading the records of CAMP", "error", err)
	}
	var list []string
	for _, name := range all {
		if id, ok := strings.CutPrefix(name, kind+"-"); ok {
			list = append(list, id)
		}
	}
	return list
}

// sliverType is a sliver type as a template or a capability.
func (c *call) sliverType(path, kind, name string) (*resource, error) {
	snapshot := c.Service.Inventory()
	for _, t := range snapshot.Offered() {
		if string(t.Name) != name {
			continue
		}
		own := map[string]any{}
		var images []string
		for _, id := range t.Images {
			for _, i := range snapshot.Images {
				if i.ID.Equal(id) {
					images = append(images, i.Name)
				}
			}
		}
		if len(images) > 0 {
			own["org.testbed:images"] = images
		}
		amount, typ := t.Default, "platformComponentTemplate"
		if kind == "platformComponentCapabilities" {
			typ, amount.Cores, amount.Memory, amount.Disk = "platformComponentCapability", 0, 0, 0
			hosts := 0
			for _, h := range snapshot.Hosts {
				if slices.Contains(h.Types, t.Name) {
					hosts++
					amount.Cores, amount.Memory, amount.Disk = max(amount.Cores, h.Capacity.Cores), max(amount.Memory, h.Capacity.Memory), max(amount.Disk, h.Capacity.Disk)
				}
			}
			own["org.testbed:hosts"] = hosts
		}
		if amount.Cores > 0 {
			own["org.testbed:cores"] = float64(amount.Cores) / 1000
		}
		if amount.Memory > 0 {
			own["org.testbed:memory"] = int64(amount.Memory)
		}
		if amount.Disk > 0 {
			own["org.testbed:disk"] = int64(amount.Disk)
		}
		return c.make(path, typ, name, "", c.created, own)
	}
	return nil, missing(path)
}

// ofTemplate is an assembly template or a part of one.
func (c *call) ofTemplate(path string, part []string) (*resource, error) {
	t, err := c.template(part[1])
	if errors.Is(err, rest.ErrNoRecord) && part[0] == "assemblyTemplates" && len(part) == 2 {
		return c.ofDerivedTemplate(path, part[1])
	}
	if err != nil {
		return nil, err
	}
	id := part[1]
	up := c.link("assemblyTemplates/"+id, c.named("assemblyTemplates/"+id, t.Plan.Name))
	if part[0] == "assemblyTemplates" && len(part) == 2 {
		var parts []link
		for _, a := range t.Plan.Artifacts {
			parts = append(parts, c.link(fmt.Sprintf("applicationComponentTemplates/%s/%s", id, a.ID), a.Label()))
		}
		r, err := c.make(path, "assemblyTemplate", t.Plan.Name, t.Plan.Description, t.Created, map[string]any{
			"applicationComponentTemplates": parts, "org.testbed:pdpUri": c.url(c.r, path+"/pdp"), "tags": unlessEmpty(t.Plan.Tags)})
		if err == nil {
			r.template = &t.templateRecord
		}
		return r, err
	}
	if len(part) < 3 {
		return nil, missing(path)
	}
	for _, a := range t.Plan.Artifacts {
		if a.ID != part[2] {
			continue
		}
		if part[0] == "applicationComponentTemplates" && len(part) == 3 {
			own := map[string]any{"assemblyTemplate": up, "org.testbed:artifactType": a.Type, "tags": unlessEmpty(a.Tags)}
			c.needs(own, id, &a, t.Plan)
			return c.make(path, "applicationComponentTemplate", a.Label(), a.Description, t.Created, own)
		}
		for i, need := range a.Requirements {
			if len(part) != 4 || part[3] != fmt.Sprint(i) || part[0] != requirementPath(&need) {
				continue
			}
			own := map[string]any{"org.testbed:requirementType": need.Type}
			if part[0] == "applicationComponentRequirements" {
				own["org.testbed:fulfilledBy"] = c.link(fmt.Sprintf("applicationComponentTemplates/%s/%s", id, need.Service), need.Service)
				return c.make(path, "applicationComponentRequirement", need.Type, "", t.Created, own)
			}
			wish(own, t.request, need.Service)
			return c.make(path, "platformComponentRequirement", need.Type, "", t.Created, own)
		}
	}
	return nil, missing(path)
}

// requirementPath is where a requirement is: DependsOn is one on another
// artifact, others on the platform.
func requirementPath(r *camp.Requirement) string {
	if strings.HasSuffix(r.Type, ":DependsOn") {
		return "applicationComponentRequirements"
	}
	return "platformComponentRequirements"
}

// needs lists what an artifact needs.
func (c *call) needs(own map[string]any, id string, a *camp.Artifact, plan *camp.Plan) {
	var of, on, uses, templates []link
	for i, need := range a.Requirements {
		path := fmt.Sprintf("%s/%s/%s/%d", requirementPath(&need), id, a.ID, i)
		if requirementPath(&need) == "applicationComponentRequirements" {
			of = append(of, c.link(path, need.Type))
			for _, b := range plan.Artifacts {
				if b.ID == need.Service {
					uses = append(uses, c.link(fmt.Sprintf("applicationComponentTemplates/%s/%s", id, b.ID), b.Label()))
				}
			}
			continue
		}
		on = append(on, c.link(path, need.Type))
		for _, s := range plan.Services {
			if s.ID == need.Service && s.Href != "" {
				templates = append(templates, link{s.Href, s.Href[strings.LastIndexByte(s.Href, '/')+1:]})
			}
		}
	}
	own["applicationComponentRequirements"], own["platformComponentRequirements"] = of, on
	own["applicationComponentTemplates"], own["platformComponentTemplates"] = uses, templates
}

// wish says what a service of the plan asks of the platform.
func wish(own map[string]any, req *request.Request, service string) {
	count := 0
	for _, n := range req.Nodes {
		if string(n.ID) != service && !strings.HasPrefix(string(n.ID), service+"-") {
			continue
		}
		count++
		if n.Capacity.Cores > 0 {
			own["org.testbed:cores"] = float64(n.Capacity.Cores) / 1000
		}
		if n.Capacity.Memory > 0 {
			own["org.testbed:memory"] = int64(n.Capacity.Memory)
		}
		if n.Capacity.Disk > 0 {
			own["org.testbed:disk"] = int64(n.Capacity.Disk)
		}
		if n.Image.Name != "" {
			own["org.testbed:images"] = []string{n.Image.Name}
		}
	}
	own["org.testbed:count"] = count
}

// unlessEmpty is a list that is left out when it is empty.
func unlessEmpty(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}
