package advert

import (
	"cmp"
	"slices"
	"strings"

	"croft/urn"
)

// takeTypes takes over the sliver types of a node and their images. typed says
// that some nodes of the testbed have sliver types.
func (t *testbed) takeTypes(n *xmlNode, h *host, typed bool) {
	for _, x := range n.Types {
		name := strings.TrimSpace(x.Name)
		if name == "" || strings.ContainsAny(name, " \t\n<>\"&") {
			t.note("host %s: %q cannot be the name of a sliver type", h.name, x.Name)
			continue
		}
		if slices.Contains(h.types, name) {
			continue // ExoGENI lists them twice
		}
		h.types = append(h.types, name)
		typ := t.typeNamed(name)
		images := slices.Clone(x.Images)
		slices.SortStableFunc(images, func(a, b xmlImage) int { // the default first
			return cmp.Compare(rank(a), rank(b))
		})
		for _, i := range images {
			image := t.takeImage(i)
			if image == nil {
				continue
			}
			if !slices.Contains(typ.images, image.name) {
				typ.images = append(typ.images, image.name)
			}
			if !slices.Contains(h.images, image.name) {
				h.images = append(h.images, image.name)
			}
		}
	}
	if len(h.types) == 0 {
		// Where no node has types, documents leave them out. Where others do,
		// these are ways out and storage rather than computers.
		name := "raw-pc"
		if !h.exclusive {
			name = "vm"
		}
		t.typeNamed(name)
		h.types = []string{name}
		if typed {
			h.out = "advertised without a sliver type: it connects others"
			t.note("host %s is advertised without a sliver type and put out of service", h.name)
		} else {
			t.note("host %s is advertised without a sliver type; %s is a guess", h.name, name)
		}
	}
}

func rank(i xmlImage) int {
	if strings.EqualFold(i.Default, "true") {
		return 0
	}
	return 1
}

func (t *testbed) typeNamed(name string) *sliverType {
	typ := t.typeBy[name]
	if typ == nil {
		typ = &sliverType{name: name, whole: strings.HasPrefix(name, "raw-")}
		t.typeBy[name] = typ
		t.types = append(t.types, typ)
	}
	return typ
}

// takeImage takes over an image, once for each name. ExoGENI and others name
// images by URL.
func (t *testbed) takeImage(x xmlImage) *image {
	named, url := strings.TrimSpace(x.Name), strings.TrimSpace(x.URL)
	key := cmp.Or(named, url)
	if key == "" {
		return nil
	}
	if known := t.imageBy[key]; known != nil {
		return known
	}
	wanted := named
	id, err := urn.Parse(named)
	if err == nil {
		wanted = id.Name
		if _, after, found := strings.Cut(wanted, "//"); found {
			wanted = after
		} else if i := strings.LastIndexByte(wanted, ':'); i >= 0 {
			wanted = wanted[i+1:]
		}
	} else if strings.HasPrefix(key, "http://") || strings.HasPrefix(key, "https://") {
		url = key
		wanted = key[strings.LastIndexByte(strings.TrimRight(key, "/"), '/')+1:]
	}
	i := &image{name: t.called("i", wanted, unfitPort), os: x.OS, version: x.Version, description: strings.TrimSpace(x.Description), url: url}
	i.urn = t.unusual(id, urn.Image, i.name)
	if strings.ContainsAny(i.url, " \t\n<>\"&") {
		i.url = ""
	}
	for _, text := range []*string{&i.os, &i.version} {
		if *text = strings.TrimSpace(*text); !labelled(*text) {
			*text = ""
		}
	}
	t.imageBy[key] = i
	t.images = append(t.images, i)
	return i
}
