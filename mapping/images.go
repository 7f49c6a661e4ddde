package mapping

import (
	"fmt"
	"slices"
	"strings"

	"croft/inventory"
	"croft/request"
	"croft/urn"
)

// findImage resolves the image that a node asks for: by URN, by short name, by
// URL, or by the forms that Emulab writes ("project//NAME", "project:NAME").
func findImage(snapshot *inventory.Snapshot, wanted request.Image) (*inventory.Image, *Refusal) {
	name, url := strings.TrimSpace(wanted.Name), strings.TrimSpace(wanted.URL)
	if isURL(name) {
		url, name = name, ""
	}
	if name != "" {
		if image := imageByName(snapshot, name); image != nil {
			return image, nil
		}
	} else {
		for i := range snapshot.Images {
			if image := &snapshot.Images[i]; image.URL == url || image.Source == url {
				return image, nil
			}
		}
		name = url
	}
	return nil, &Refusal{Kind: Impossible, Place: wanted.Place, Why: fmt.Sprintf("no image %q here", name), Hint: imageHint(snapshot, name)}
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

func imageByName(snapshot *inventory.Snapshot, name string) *inventory.Image {
	local := name
	if id, err := urn.Parse(name); err == nil {
		for i := range snapshot.Images {
			if snapshot.Images[i].ID.Equal(id) {
				return &snapshot.Images[i]
			}
		}
		if !snapshot.Authority.Covers(id.Authority) {
			return nil // another testbed's image of that name may be anything
		}
		local = id.Name
	}
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, n := range []string{local, lastPart(local)} {
			for i := range snapshot.Images {
				if same(snapshot.Images[i].Name, n) {
					return &snapshot.Images[i]
				}
			}
		}
	}
	return nil
}

// lastPart takes the project off a name: "ops//UBUNTU22" and "ops:UBUNTU22" are
// UBUNTU22.
func lastPart(name string) string {
	if _, after, found := strings.Cut(name, "//"); found {
		return after
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		return name[i+1:]
	}
	return name
}

func imageHint(snapshot *inventory.Snapshot, wanted string) string {
	var names []string
	for _, image := range snapshot.Images {
		names = append(names, image.Name)
	}
	if id, err := urn.Parse(wanted); err == nil {
		wanted = lastPart(id.Name)
	}
	if len(names) == 0 {
		return "no images are declared here: leave disk_image out"
	}
	if near := inventory.Nearest(wanted, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return "there are " + some(names)
}

// some lists names, shortened if there are many.
func some(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// imageFor is the image that a node boots as a type on a host: the one wanted,
// or the first that both can boot. None at all is the driver's own, if the type
// names no images.
func imageFor(t *inventory.SliverType, h *inventory.Host, wanted *inventory.Image) (urn.URN, bool) {
	boots := func(id urn.URN) bool { return len(h.Images) == 0 || slices.Contains(h.Images, id) }
	if wanted != nil {
		return wanted.ID, slices.Contains(t.Images, wanted.ID) && boots(wanted.ID)
	}
	for _, id := range t.Images {
		if boots(id) {
			return id, true
		}
	}
	return urn.URN{}, len(t.Images) == 0
}
