package tosca

import (
	"math"
	"strings"

	"croft/capacity"
	"croft/languages/tosca/values"
	"croft/request"
)

// storage gives computers the disk of the volumes that they are attached to.
// There is one disk: a volume is so much more of it, and its mount point a
// directory.
func (d *deployment) storage() {
	attached := map[*instance]bool{}
	for _, i := range d.instances {
		if i.role != computer || i.request == nil {
			continue
		}
		for _, t := range i.targets {
			if t.instance.role != volume {
				continue
			}
			attached[t.instance] = true
			if !d.grow(i, t.instance) {
				continue
			}
			point, given := t.relationship.Property("location", 0).(string)
			if !given || point == "" {
				continue
			}
			if !strings.HasPrefix(point, "/") {
				i.part.service.Tell(entryOf(t.relationship), "want a path such as /data", "location %q is no mount point", point)
				continue
			}
			d.mounts(i, t.instance, point)
		}
	}
	for _, i := range d.instances {
		if i.role == volume && !attached[i] {
			i.part.service.Warn(i.node.Entry, "", "no computer is attached to volume %s: it is left out", i.node.Name)
		}
	}
}

// grow adds the size of a volume to the disk of a computer.
func (d *deployment) grow(i, v *instance) bool {
	s, n := v.part.service, v.node
	for _, existing := range []string{"volume_id", "snapshot_id"} {
		if text(n.Property(existing, v.index)) != "" {
			s.Tell(n.Entry, "volumes are made anew, empty", "%s of node %s: a testbed keeps no volumes", existing, n.Name)
			return false
		}
	}
	size, ok := n.Property("size", v.index).(values.Quantity)
	if !ok {
		s.Tell(n.Entry, "want one such as 10 GB", "size of node %s is not known", n.Name)
		return false
	}
	i.request.Capacity.Disk += capacity.MiB(math.Ceil(size.Amount / (1 << 20)))
	return true
}

// mounts makes the mount point of a volume, before all else that its computer
// does.
func (d *deployment) mounts(i, v *instance, point string) {
	name := d.stepName(string(i.id) + "." + string(v.id) + ".mount")
	d.request.Steps = append(d.request.Steps, request.Step{
		Name: name, Node: i.id, Place: d.place(v.part.service, v.node.Entry), Root: true,
		Run: &request.Run{Args: []string{"mkdir", "-p", "--", point}},
	})
	v.steps = append(v.steps, stepOf{operation: "mount", name: name})
}
