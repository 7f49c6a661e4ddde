package namespace

// CgroupName names the driver's own group for the tests.
func (d *Driver) CgroupName() string { return d.cgroups.name }

// CgroupDirs are where the driver's groups lie.
func (d *Driver) CgroupDirs() []string { return d.cgroups.dirs }
