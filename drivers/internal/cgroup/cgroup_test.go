package cgroup_test

import (
	"slices"
	"testing"

	"croft/drivers/internal/cgroup"
)

func TestReadCgroups(t *testing.T) {
	for _, test := range []struct {
		name, mountinfo string
		dirs            []string
		unified         string
	}{
		{"version 1", `33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:3 - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices
39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
`, []string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/systemd"}, ""},
		{"version 2", `28 22 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
`, []string{"/sys/fs/cgroup"}, "/sys/fs/cgroup"},
		{"both", `35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`, []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"}, "/sys/fs/cgroup/unified"},
		{"none", "22 27 0:21 / /proc rw,relatime - proc proc rw\nnonsense\n", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := cgroup.Parse(test.mountinfo)
			if !slices.Equal(h.Dirs, test.dirs) || h.Unified != test.unified {
				t.Errorf("got %q, %q; want %q, %q", h.Dirs, h.Unified, test.dirs, test.unified)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n")
	f.Fuzz(func(t *testing.T, mountinfo string) {
		for _, d := range cgroup.Parse(mountinfo).Dirs {
			if d == "" {
				t.Error("a hierarchy without a mount point")
			}
		}
	})
}
