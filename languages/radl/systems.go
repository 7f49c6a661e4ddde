package radl

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"croft/capacity"
	"croft/request"
)

// plan is what all machines of a system have in common.
type plan struct {
	name       string
	aspect     *Aspect
	place      request.Place
	node       request.Node // but for its name and interfaces
	interfaces []wire
	apps       []application
	mounts     []string
	disks      map[int]bounds // sizes, in bytes
	gpu        gpu
}

// wire is an interface of the machines of a system.
type wire struct {
	lan   *lan
	ip    netip.Addr
	dns   string
	place request.Place
}

type application struct {
	name, version, path string
	preinstalled        bool
	place               request.Place
}

type gpu struct {
	count         bounds
	model, vendor *Feature
}

// plan reads a system that machines are asked of.
func (c *compiler) plan(a *Aspect, by *Deploy) *plan {
	p := &plan{name: a.Name, aspect: a, disks: map[int]bounds{}, gpu: gpu{count: unbounded()}}
	p.place = c.place(a, a.Offset, "system "+a.Name)
	if c.definitions.earlier[a] {
		p.place = c.source.Place(by.Offset)
		p.place.Path = "system " + a.Name
	}
	p.node = request.Node{Place: p.place}
	numbers := map[string]bounds{}
	var softs []*Feature
	for i := range a.Features {
		f := &a.Features[i]
		switch {
		case f.Op == Soft:
			softs = append(softs, f)
		case f.Value.Kind == Number:
			b, ok := numbers[f.Name]
			if !ok {
				b = unbounded()
			}
			numbers[f.Name], _ = b.within(f)
		}
	}
	for i := range a.Features {
		if f := &a.Features[i]; f.Op != Soft {
			c.systemFeature(p, f, numbers)
		}
	}
	slices.SortStableFunc(softs, func(a, b *Feature) int { return cmp.Compare(b.Weight.Num, a.Weight.Num) })
	for _, f := range softs {
		c.soft(p, f)
	}
	c.finish(p)
	return p
}

// at is the place of a feature of a system.
func (c *compiler) at(p *plan, f *Feature) request.Place {
	if c.definitions.earlier[p.aspect] {
		return p.place
	}
	place := c.source.Place(f.Offset)
	place.Path = "system " + p.name
	return place
}

func (c *compiler) refuseIn(p *plan, f *Feature, what, hint string) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, problemAt(c.at(p, f), what, hint))
	}
}

func (c *compiler) keepIn(p *plan, f *Feature, why string) {
	c.keep(c.at(p, f), fmt.Sprintf("system %s: %s is kept and has no effect: %s", p.name, f.Name, why), "")
}

// textOf is the value of a feature that is a text; that of a random one is
// made of the document and where it stands.
func (c *compiler) textOf(f *Feature) string {
	if f.Value.Kind != Random {
		return f.Value.Text
	}
	sum := sha256.Sum256(fmt.Appendf(slices.Clone(c.source.text), "\x00%d", f.Value.Offset))
	text := hex.EncodeToString(sum[:])
	return text[:min(int(f.Value.Num), len(text))]
}

// systemFeature does as one feature says.
func (c *compiler) systemFeature(p *plan, f *Feature, numbers map[string]bounds) {
	n, text := &p.node, f.Value.Text
	if f.Value.Kind == Random {
		text = c.textOf(f)
	}
	prefix, rest, _ := strings.Cut(f.Name, ".")
	switch prefix {
	case "net_interface":
		c.interfaceFeature(p, f, rest, text)
		return
	case "disk":
		c.diskFeature(p, f, rest, text, numbers)
		return
	}
	switch f.Name {
	case "cpu.count":
		setBounds(&n.Capacity.Cores, &n.Most.Cores, numbers[f.Name], func(x float64) (float64, float64) { return x * float64(capacity.Core), x * float64(capacity.Core) })
	case "memory.size":
		setBounds(&n.Capacity.Memory, &n.Most.Memory, numbers[f.Name], mebibytes)
	case "gpu.count":
		p.gpu.count = numbers[f.Name]
	case "gpu.model":
		p.gpu.model = f
	case "gpu.vendor":
		p.gpu.vendor = f
	case "cpu.arch":
		n.Architecture = map[string]string{"I386": "i686", "I686": "i686"}[strings.ToUpper(text)]
		if n.Architecture == "" {
			n.Architecture = "x86_64"
		}
	case "cpu.sgx":
		if c.yes(p, f) {
			n.Features = append(n.Features, request.Feature{Name: "sgx", Weight: 1, Place: c.at(p, f)})
		}
	case "availability_zone":
		n.Site = text
	case "instance_type":
		n.SliverType, n.TypePlace = request.SliverType(text), c.at(p, f)
	case "spot":
		n.Preemptible = strings.EqualFold(text, "yes")
	case "environment.variables":
		c.environment(p, f)
	case "ansible_host":
		c.refuseIn(p, f, "recipes are not run by a host outside of the testbed, ansible_host = "+shorten(text), "leave it out: they run in the node itself")
	case "docker.privileged":
		if c.yes(p, f) {
			c.refuseIn(p, f, "nodes are not privileged here, docker.privileged", "leave it out")
		}
	case "command", "script":
		// With the start-up.
	case "cpu.performance":
		c.keepIn(p, f, "hosts are not rated in such units")
	case "price":
		c.keepIn(p, f, "nothing here has a price")
	case "image_type", "virtual_system_type":
		c.keepIn(p, f, "the testbed chooses how its nodes are made")
	case "instance_id", "instance_name", "instance_tags":
		c.keepIn(p, f, "nodes have the names of the manifest")
	default:
		c.keepIn(p, f, "nobody here knows it")
	}
}

func (c *compiler) yes(p *plan, f *Feature) bool {
	switch strings.ToLower(f.Value.Text) {
	case "yes", "true", "1":
		return true
	case "no", "false", "0", "":
		return false
	}
	c.refuseIn(p, f, fmt.Sprintf("%s is %q", f.Name, shorten(f.Value.Text)), "want yes or no")
	return false
}

// setBounds makes the least and the most of an interval. convert gives a
// number in the unit wanted, rounded down and up.
func setBounds[T ~int64](least, most *T, b bounds, convert func(float64) (down, up float64)) {
	if b.low > 0 && !math.IsInf(b.low, 0) {
		_, up := convert(b.low)
		*least = T(min(math.Ceil(up), math.MaxInt64/2))
	}
	if !math.IsInf(b.high, 0) {
		down, _ := convert(b.high)
		*most = T(min(math.Floor(down), math.MaxInt64/2))
		if b.low == b.high {
			*most = *least // rounding must not exclude what is asked for
		}
		*most = max(*most, 1)
	}
}

func mebibytes(bytes float64) (down, up float64) {
	const mib = 1 << 20
	return math.Floor(bytes / mib), math.Ceil(bytes / mib)
}

// interfaceFeature reads net_interface.N.*.
func (c *compiler) interfaceFeature(p *plan, f *Feature, rest, text string) {
	number, suffix, _ := strings.Cut(rest, ".")
	n, _ := index(number)
	const most = 64
	if n >= most {
		c.refuseIn(p, f, fmt.Sprintf("interface %d", n), fmt.Sprintf("a machine has %d at most", most))
		return
	}
	for len(p.interfaces) <= n {
		p.interfaces = append(p.interfaces, wire{place: p.place})
	}
	w := &p.interfaces[n]
	switch suffix {
	case "connection":
		w.place = c.at(p, f)
		if w.lan = c.network(text); w.lan == nil {
			c.refuseIn(p, f, fmt.Sprintf("there is no network %q", shorten(text)), "")
			return
		}
		for _, port := range w.lan.ports {
			if !slices.ContainsFunc(p.node.Ports, func(q request.Port) bool { return q.Name == port.Name }) {
				p.node.Ports = append(p.node.Ports, port)
			}
		}
	case "ip":
		ip, err := netip.ParseAddr(text)
		if err != nil {
			c.refuseIn(p, f, fmt.Sprintf("%q is no address", shorten(text)), "")
			return
		}
		w.ip = ip
	case "dns_name":
		w.dns = text
	default:
		c.keepIn(p, f, "nobody here knows it")
	}
}

// diskFeature reads disk.N.*.
func (c *compiler) diskFeature(p *plan, f *Feature, rest, text string, numbers map[string]bounds) {
	number, suffix, _ := strings.Cut(rest, ".")
	n, _ := index(number)
	switch suffix {
	case "size":
		p.disks[n] = numbers[f.Name]
		return
	case "free_size":
		if _, sized := p.disks[n]; !sized {
			b := numbers[f.Name]
			p.disks[n] = bounds{low: b.low, high: math.Inf(1)}
		}
		return
	case "applications":
		c.application(p, f)
		return
	case "device", "type", "fstype":
		c.keepIn(p, f, "data disks are directories of the node's disk")
		return
	case "mount_path":
		if n > 0 && strings.HasPrefix(text, "/") && !strings.ContainsAny(text, "\n\x00") {
			p.mounts = append(p.mounts, text)
			c.keep(c.at(p, f), fmt.Sprintf("system %s: disk %d is a directory of the node's disk, %s", p.name, n, shorten(text)), "")
		} else if n > 0 {
			c.refuseIn(p, f, fmt.Sprintf("%q is no absolute path", shorten(text)), "")
		}
		return
	}
	if n > 0 {
		if suffix == "image.url" || suffix == "image.name" {
			c.refuseIn(p, f, fmt.Sprintf("disk %d has an image, and data disks are empty here", n), "leave it out")
			return
		}
		c.keepIn(p, f, "it is about a disk other than that which boots")
		return
	}
	image := &p.node.Image
	if image.IsZero() && strings.HasPrefix(suffix, "os.") || strings.HasPrefix(suffix, "image.") {
		image.Place = c.at(p, f)
	}
	switch suffix {
	case "image.url":
		urls := f.Value.List
		if f.Value.Kind != List {
			urls = []string{text}
		}
		c.images(p, f, urls)
	case "image.name":
		image.Name = text
	case "os.name":
		image.System.OS = strings.ToLower(text)
	case "os.flavour", "os.flavor":
		image.System.Distribution = strings.ToLower(text)
	case "os.version":
		switch f.Op {
		case Greater, GreaterEqual:
			image.System.MinVersion = text
		case Less, LessEqual:
			image.System.MaxVersion = text
		default:
			image.System.Version = text
		}
	case "os.credentials.username", "os.credentials.public_key", "os.credentials.private_key", "os.credentials.password",
		"os.credentials.new.password", "os.credentials.new.private_key", "os.credentials.new.public_key":
		c.credential(p, f, suffix, text)
	default:
		c.keepIn(p, f, "nobody here knows it")
	}
}

// images takes the URLs of a disk's image, the first that is not another
// cloud's first.
func (c *compiler) images(p *plan, f *Feature, urls []string) {
	n := &p.node
	var foreign []string
	for _, u := range urls {
		scheme, _, ok := strings.Cut(u, "://")
		if ok && foreignSchemes[strings.ToLower(scheme)] {
			foreign = append(foreign, u)
			continue
		}
		image := request.Image{URL: u, Place: c.at(p, f)}
		if !ok {
			image = request.Image{Name: u, Place: c.at(p, f)}
		}
		if n.Image.URL == "" && n.Image.Name == "" {
			image.System = n.Image.System
			n.Image = image
		} else {
			n.OtherImages = append(n.OtherImages, image)
		}
	}
	switch {
	case len(foreign) == len(urls) && len(urls) > 0:
		c.refuseIn(p, f, fmt.Sprintf("the images are those of other clouds only: %s", shorten(strings.Join(foreign, ", "))),
			"name one of this testbed's, or say what it should hold by disk.0.os.name, flavour and version")
	case len(foreign) > 0:
		c.keep(c.at(p, f), fmt.Sprintf("system %s: images of other clouds are passed over: %s", p.name, shorten(strings.Join(foreign, ", "))), "")
	}
}

// foreignSchemes are those of images that other clouds have.
var foreignSchemes = map[string]bool{
	"one": true, "ost": true, "aws": true, "gce": true, "azr": true, "appdb": true, "fbw": true, "linode": true, "lin": true,
	"ec2": true, "vsphere": true, "orange": true, "kubernetes": true, "egi": true, "cis": true, "oscar": true,
}

// secrets refuses what nobody but its owner should have, wherever it stands in
// a document: documents are kept, and given back. Passwords do not open nodes.
func (c *compiler) secrets() {
	var look func(what string, features []Feature)
	look = func(what string, features []Feature) {
		for i := range features {
			f := &features[i]
			look(what, f.Value.Features)
			place := c.source.Place(f.Offset)
			place.Path = what
			switch _, suffix, _ := strings.Cut("."+f.Name, ".credentials."); strings.TrimPrefix(suffix, "new.") {
			case "password":
				c.problems = append(c.problems, problemAt(place, "nodes are not opened by passwords, "+f.Name,
					"give a public key: disk.0.os.credentials.public_key = 'ssh-ed25519 …'"))
			case "private_key":
				c.problems = append(c.problems, problemAt(place, "a private key is nobody else's business, "+f.Name,
					"give the public key: disk.0.os.credentials.public_key = 'ssh-ed25519 …', and renew the key that was sent"))
			}
			if f.Name == "proxy_key" || f.Name == "proxy_host" && strings.Contains(f.Value.Text, "@") {
				c.problems = append(c.problems, problemAt(place, "the login of a proxy is not for others, "+f.Name, "leave it out: nodes are reached by the logins of the manifest"))
			}
		}
	}
	for _, item := range c.document.Items {
		if a, ok := item.(*Aspect); ok && len(c.problems) < maxProblems {
			look(string(a.Class)+" "+a.Name, a.Features)
		}
	}
}

// credential reads how the author wants to log in.
func (c *compiler) credential(p *plan, f *Feature, suffix, text string) {
	suffix = strings.TrimPrefix(suffix, "os.credentials.")
	switch suffix {
	case "new.password", "password", "private_key", "new.private_key":
		return // refused by secrets
	}
	if len(p.node.Users) == 0 {
		p.node.Users = []request.User{{}}
	}
	u := &p.node.Users[0]
	switch suffix {
	case "username":
		if text == "root" {
			c.keepIn(p, f, "nobody logs in as root here; the users of a node have sudo")
			return
		}
		u.Login = text
	case "public_key", "new.public_key":
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil {
			c.refuseIn(p, f, "disk.0.os.credentials."+suffix+" is no public key", "want the one line of an OpenSSH public key file, such as id_ed25519.pub")
			return
		}
		u.Keys = append(u.Keys, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))))
	}
}

// environment reads variables, as NAME=VALUE or NAME:VALUE.
func (c *compiler) environment(p *plan, f *Feature) {
	list := f.Value.List
	if f.Value.Kind != List {
		list = strings.Split(c.textOf(f), ",")
	}
	for _, e := range list {
		i := strings.IndexAny(e, "=:")
		if i < 1 || !isVariable(strings.TrimSpace(e[:i])) {
			if strings.TrimSpace(e) != "" {
				c.refuseIn(p, f, fmt.Sprintf("%q is no variable", shorten(e)), "want NAME=VALUE, with commas between them")
			}
			continue
		}
		p.node.Env = append(p.node.Env, request.Variable{Name: strings.TrimSpace(e[:i]), Value: request.Text(strings.TrimSpace(e[i+1:]))})
	}
}

func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || i > 0 && isDigit(c)) {
			return false
		}
	}
	return s != ""
}

func (c *compiler) application(p *plan, f *Feature) {
	a := application{place: c.at(p, f)}
	for i := range f.Value.Features {
		g := &f.Value.Features[i]
		switch g.Name {
		case "name":
			a.name = g.Value.Text
		case "version":
			a.version = g.Value.Text
		case "path":
			a.path = g.Value.Text
		case "preinstalled":
			a.preinstalled = strings.EqualFold(g.Value.Text, "yes")
		}
	}
	if a.name == "" {
		c.refuseIn(p, f, "an application without a name", "as in: disk.0.applications contains (name='tomcat')")
		return
	}
	for i := range p.apps {
		if p.apps[i].name == a.name {
			return
		}
	}
	p.apps = append(p.apps, a)
}

// soft does what it can for a wish that machines can go without: an image is
// preferred, a property of hosts weighs. The weights of a document are relative
// to one another; those of features stay below 1, where they would be
// conditions.
func (c *compiler) soft(p *plan, s *Feature) {
	var wished request.System
	hard := p.node.Image.System
	for i := range s.Value.Features {
		f := &s.Value.Features[i]
		switch f.Name {
		case "disk.0.os.name":
			wished.OS = strings.ToLower(f.Value.Text)
		case "disk.0.os.flavour":
			wished.Distribution = strings.ToLower(f.Value.Text)
		case "disk.0.os.version":
			switch f.Op {
			case Greater, GreaterEqual:
				wished.MinVersion = f.Value.Text
			case Less, LessEqual:
				wished.MaxVersion = f.Value.Text
			default:
				wished.Version = f.Value.Text
			}
		case "gpu.model":
			p.node.Features = append(p.node.Features, request.Feature{Name: "gpu-" + f.Value.Text, Weight: softWeight(s.Weight.Num), Place: c.at(p, f)})
		case "cpu.sgx":
			if c.yes(p, f) {
				p.node.Features = append(p.node.Features, request.Feature{Name: "sgx", Weight: softWeight(s.Weight.Num), Place: c.at(p, f)})
			}
		default:
			c.keep(c.at(p, f), fmt.Sprintf("system %s: the soft wish for %s is kept and has no effect", p.name, f.Name), "")
		}
	}
	if wished == (request.System{}) {
		return
	}
	both, ok := together(hard, wished)
	if !ok || p.node.Image.URL != "" || p.node.Image.Name != "" {
		return // what must be goes before what is wished for
	}
	// The image that holds what is wished for, else what would have been taken.
	image := request.Image{System: both, Place: c.at(p, s)}
	if len(p.node.OtherImages) == 0 {
		p.node.Image.Place = cmp.Or(p.node.Image.Place, c.at(p, s))
		p.node.OtherImages = []request.Image{p.node.Image}
		p.node.Image = image
		return
	}
	p.node.OtherImages = slices.Insert(p.node.OtherImages, len(p.node.OtherImages)-1, image)
}

// softWeight makes a weight between 0 and 1 of one between 0 and anything.
func softWeight(w float64) float64 { return (w + 1) / (w + 2) * 0.99 }

// together is a system that is both; not, if none can be.
func together(a, b request.System) (request.System, bool) {
	for _, f := range []struct{ a, b *string }{
		{&a.OS, &b.OS}, {&a.Distribution, &b.Distribution}, {&a.Version, &b.Version}, {&a.MinVersion, &b.MinVersion}, {&a.MaxVersion, &b.MaxVersion},
	} {
		if *f.a != "" && *f.b != "" && !strings.EqualFold(*f.a, *f.b) {
			return a, false
		}
		*f.a = cmp.Or(*f.a, *f.b)
	}
	return a, true
}

// finish makes what several features say together.
func (c *compiler) finish(p *plan) {
	n := &p.node
	var least, most float64
	bounded := len(p.disks) > 0
	for _, b := range p.disks {
		if b.low > 0 && !math.IsInf(b.low, 0) {
			least += b.low
		}
		bounded = bounded && !math.IsInf(b.high, 0)
		most += b.high
	}
	b := bounds{low: least, high: math.Inf(1)}
	if bounded {
		b.high = most
	}
	setBounds(&n.Capacity.Disk, &n.Most.Disk, b, mebibytes)
	setBounds(&n.Capacity.GPUs, &n.Most.GPUs, p.gpu.count, func(x float64) (float64, float64) { return x, x })
	for _, f := range []*Feature{p.gpu.model, p.gpu.vendor} {
		if f != nil {
			n.Features = append(n.Features, request.Feature{Name: "gpu-" + strings.ToLower(c.textOf(f)), Weight: 1, Place: c.at(p, f)})
		}
	}
	if p.gpu.model != nil && n.Capacity.GPUs == 0 {
		n.Capacity.GPUs = 1
	}
	if len(n.Users) > 0 && n.Users[0].Login == "" && len(n.Users[0].Keys) == 0 {
		n.Users = nil
	}
}
