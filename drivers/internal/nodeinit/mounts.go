package nodeinit

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// detached makes a file system that is mounted nowhere yet and returns its
// descriptor. Options are "key=value" or "flag".
func detached(fstype string, attrs int, options ...string) (int, error) {
	fs, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open file system %s: %w", fstype, err)
	}
	defer unix.Close(fs)
	for _, o := range options {
		key, value, isPair := strings.Cut(o, "=")
		if isPair {
			err = unix.FsconfigSetString(fs, key, value)
		} else {
			err = unix.FsconfigSetFlag(fs, key)
		}
		if err != nil {
			return -1, fmt.Errorf("%s: option %s: %w%s", fstype, o, err, kernelSays(fs))
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("make %s: %w%s", fstype, err, kernelSays(fs))
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return -1, fmt.Errorf("mount %s: %w", fstype, err)
	}
	return fd, nil
}

// kernelSays returns what the kernel has written about a file system that it
// refused.
func kernelSays(fs int) string {
	buf := make([]byte, 512)
	n, err := unix.Read(fs, buf)
	if err != nil || n <= 0 {
		return ""
	}
	return " (" + strings.TrimSpace(string(buf[:n])) + ")"
}

// target opens a path of the node's own tree to mount at. What the node's
// users have left there from an earlier boot may be anything: a symbolic link
// is not followed, and something of the wrong kind makes way.
func target(at string, dir bool) (int, error) {
	flags := uint64(unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW)
	if dir {
		flags |= unix.O_DIRECTORY
	}
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, at, &how)
	if err == nil {
		return fd, nil
	}
	if parent := path.Dir(at); parent != "/" {
		p, err := target(parent, true)
		if err != nil {
			return -1, err
		}
		unix.Close(p)
	}
	if !errors.Is(err, unix.ENOENT) {
		if err := os.RemoveAll(at); err != nil {
			return -1, fmt.Errorf("make place for %s: %w", at, err)
		}
	}
	if dir {
		err = unix.Mkdir(at, 0o755)
	} else {
		err = unix.Mknod(at, unix.S_IFREG|0o666, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("make %s: %w", at, err)
	}
	fd, err = unix.Openat2(unix.AT_FDCWD, at, &how)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", at, err)
	}
	return fd, nil
}

func attachAt(fd int, at string, dir bool) error {
	to, err := target(at, dir)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	if err := unix.MoveMount(fd, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount at %s: %w", at, err)
	}
	return unix.Close(fd)
}

// attach mounts a detached file system at a directory, which it makes if it is
// missing.
func attach(fd int, at string) error { return attachAt(fd, at, true) }

// attachFile mounts a detached file at a file.
func attachFile(fd int, at string) error { return attachAt(fd, at, false) }

// kernelMounts are the file systems of the kernel that every node has.
type kernelMounts struct {
	dirs    []mount
	devices []mount
}

type mount struct {
	at string
	fd int
}

// devices of the host that a node sees; it can make none itself.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty", "net/tun"}

func openKernelMounts() (kernelMounts, error) {
	const safe = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	var k kernelMounts
	for _, m := range []struct {
		at, fstype string
		attrs      int
		optional   bool
		options    []string
	}{
		{"/proc", "proc", safe, false, nil},
		{"/sys", "sysfs", safe | unix.MOUNT_ATTR_RDONLY, true, nil},
		{"/dev", "tmpfs", unix.MOUNT_ATTR_NOSUID, false, []string{"mode=755", "size=64k"}},
		{"/dev/pts", "devpts", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC, false, []string{"newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{"/dev/shm", "tmpfs", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, false, []string{"mode=1777"}},
		{"/dev/mqueue", "mqueue", safe, true, nil},
		{"/run", "tmpfs", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, false, []string{"mode=755"}},
	} {
		fd, err := detached(m.fstype, m.attrs, m.options...)
		if err != nil {
			if m.optional {
				continue
			}
			return k, fmt.Errorf("%s of the node: %w", m.at, err)
		}
		k.dirs = append(k.dirs, mount{m.at, fd})
	}
	for _, d := range devices {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/dev/"+d, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return k, fmt.Errorf("device %s: %w", d, err)
		}
		k.devices = append(k.devices, mount{"/dev/" + d, fd})
	}
	return k, nil
}

// attach mounts everything below the root that the process has by now.
func (k kernelMounts) attach() error {
	for _, m := range k.dirs {
		if err := attach(m.fd, m.at); err != nil {
			return err
		}
	}
	for _, m := range k.devices {
		if err := attachFile(m.fd, m.at); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(to, "/dev/"+name); err != nil {
			return fmt.Errorf("make /dev/%s: %w", name, err)
		}
	}
	return os.MkdirAll("/run/lock", 0o1777)
}
