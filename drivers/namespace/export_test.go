package namespace

import (
	"os"

	"golang.org/x/sys/unix"
)

// CgroupName names the driver's own group for the tests.
func (d *Driver) CgroupName() string { return d.cgroups.name }

// CgroupDirs are where the driver's groups lie.
func (d *Driver) CgroupDirs() []string { return d.cgroups.Dirs }

func mkdirAt(dir *os.File, name string) error { return unix.Mkdirat(int(dir.Fd()), name, 0o700) }
