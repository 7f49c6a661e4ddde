package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"croft/inventory"
	"croft/request"
	"croft/urn"
)

// findImages lists the images that a wish is for: one by its name, or all that
// hold the system wanted, the newest first.
func findImages(snapshot *inventory.Snapshot, wanted request.Image) ([]*inventory.Image, *Refusal) {
	if wanted.Name != "" || wanted.URL != "" {
		image, r := findImage(snapshot, wanted)
		if r != nil {
			return nil, r
		}
		if !holds(image, wanted.System) {
			return nil, &Refusal{Kind: Impossible, Place: wanted.Place, Why: fmt.Sprintf("image %s does not hold %s", image.Name, describeSystem(wanted.System)),
				Hint: "it holds " + systemOf(image)}
		}
		return []*inventory.Image{image}, nil
	}
	var found []*inventory.Image
	for i := range snapshot.Images {
		if image := &snapshot.Images[i]; holds(image, wanted.System) {
			found = append(found, image)
		}
	}
	if len(found) == 0 {
		var all []string
		for i := range snapshot.Images {
			all = append(all, systemOf(&snapshot.Images[i]))
		}
		hint := "no images are declared here"
		if len(all) > 0 {
			slices.Sort(all)
			hint = "there are " + some(slices.Compact(all))
		}
		return nil, &Refusal{Kind: Impossible, Place: wanted.Place, Why: fmt.Sprintf("no image here holds %s", describeSystem(wanted.System)), Hint: hint}
	}
	slices.SortStableFunc(found, func(a, b *inventory.Image) int { return compareVersions(b.Version, a.Version) })
	return found, nil
}

func systemOf(i *inventory.Image) string {
	return strings.Join(strings.Fields(i.OS+" "+i.Distribution+" "+i.Version), " ")
}

// holds reports whether an image has a system. Operators write "Debian" as the
// system as well as "Linux" with the distribution "Debian".
func holds(i *inventory.Image, s request.System) bool {
	same := func(wanted string, has ...string) bool {
		return wanted == "" || slices.ContainsFunc(has, func(h string) bool { return strings.EqualFold(h, wanted) })
	}
	linux := i.OS
	if i.Distribution == "" && !strings.EqualFold(i.OS, "linux") && slices.ContainsFunc(distributions, func(d string) bool { return strings.EqualFold(d, i.OS) }) {
		linux = "linux"
	}
	if !same(s.OS, i.OS, linux) || !same(s.Distribution, i.Distribution, i.OS) {
		return false
	}
	if s.Version != "" && i.Version != s.Version && !strings.HasPrefix(i.Version, s.Version+".") {
		return false
	}
	return (s.MinVersion == "" || compareVersions(i.Version, s.MinVersion) >= 0) && (s.MaxVersion == "" || compareVersions(i.Version, s.MaxVersion) <= 0 || strings.HasPrefix(i.Version, s.MaxVersion+"."))
}

// distributions are those of Linux that operators are known to write for the
// system itself.
var distributions = []string{"alma", "almalinux", "alpine", "arch", "centos", "debian", "fedora", "gentoo", "opensuse", "rhel", "rocky", "suse", "ubuntu"}

// compareVersions compares dotted numbers, part by part; what is no number
// compares as text, and nothing comes before everything.
func compareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		if i >= len(x) {
			return -1
		}
		if i >= len(y) {
			return 1
		}
		m, errM := strconv.ParseUint(x[i], 10, 63)
		n, errN := strconv.ParseUint(y[i], 10, 63)
		c := cmp.Compare(m, n)
		if errM != nil || errN != nil {
			c = strings.Compare(x[i], y[i])
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// findImage resolves the image that a node asks for: by URN, by short name, by
// URL, or by the forms that Emulab writes ("project//NAME", "project:NAME").
func findImage(snapshot *inventory.Snapshot, wanted request.Image) (*inventory.Image, *Refusal) {
	name, url := strings.TrimSpace(wanted.Name), strings.TrimSpace(wanted.URL)
	if isURL(name) {
		url, name = name, ""
	}
	if name != "" {
		// Names of container images have colons and slashes of their own.
		for i := range snapshot.Images {
			if image := &snapshot.Images[i]; image.Source == name || image.URL == name {
				return image, nil
			}
		}
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

// imageFor is the image that a node boots as a type on a host: the first of
// those wanted, or the first at all, that both can boot. None at all is the
// driver's own, if the type names no images.
func imageFor(t *inventory.SliverType, h *inventory.Host, wanted []*inventory.Image) (*urn.URN, bool) {
	boots := func(id urn.URN) bool { return len(h.Images) == 0 || slices.Contains(h.Images, id) }
	for _, image := range wanted {
		if slices.Contains(t.Images, image.ID) && boots(image.ID) {
			return &image.ID, true
		}
	}
	if len(wanted) > 0 {
		return nil, false
	}
	for i := range t.Images {
		if boots(t.Images[i]) {
			return &t.Images[i], true
		}
	}
	return nil, len(t.Images) == 0
}

func describeSystem(s request.System) string {
	parts := []string{s.OS, s.Distribution, s.Version}
	if s.MinVersion != "" {
		parts = append(parts, "from "+s.MinVersion)
	}
	if s.MaxVersion != "" {
		parts = append(parts, "to "+s.MaxVersion)
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}
