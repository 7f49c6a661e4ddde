package namespace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"croft/drivers/internal/program"
)

// layer opens a directory as a layer of a node: a mount of its own, read only,
// whose owners are those of the node's user namespace. Mounts below the
// directory are not part of it.
func layer(dir string, userns int) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open layer %s: %w", dir, err)
	}
	attr := unix.MountAttr{
		Attr_set:  unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV,
		Userns_fd: uint64(userns),
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
			return -1, fmt.Errorf("map the owners of %s: %w (its file system or the kernel has no idmapped mounts; ext4, xfs and btrfs have them from Linux 5.15 on)", dir, err)
		}
		return -1, fmt.Errorf("map the owners of %s: %w", dir, err)
	}
	return fd, nil
}

// place opens a directory or file of the host's to be mounted in a node as it
// is.
func place(path string) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	return fd, nil
}

// openProgram opens the binary and its libraries to be mounted in a node.
func openProgram(p *program.Program) (binary int, libs []int, err error) {
	binary, err = place(fmt.Sprintf("/proc/self/fd/%d", p.File.Fd()))
	if err != nil {
		return -1, nil, err
	}
	for _, l := range p.Libraries {
		fd, err := place(l)
		if err != nil {
			closeFDs(append(libs, binary))
			return -1, nil, err
		}
		libs = append(libs, fd)
	}
	return binary, libs, nil
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
