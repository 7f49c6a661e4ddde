package namespace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"croft/capacity"
)

// The disk of a node that has a limit is an ext4 file system in a file, which
// takes up on the host what is written to it. It is mounted for the node alone:
// the host has it in sight at no place. A node without a limit, and every node
// on a host that cannot do this, has a directory of the host's.

const (
	// minDisk is the smallest file system that holds what a node writes when
	// it boots.
	minDisk capacity.MiB = 16
	// loopTries is how often a loop device is asked for when others take them
	// away.
	loopTries = 50
	// loopGone is how long the kernel may take to let go of an image after the
	// last node on it has ended.
	loopGone = 5 * time.Second
	// journal is the size of the file system's journal, in MiB.
	journal = "4"
)

// diskImage is the file of a node's disk.
func (d *Driver) diskImage(slot int) string { return filepath.Join(d.state.nodeDir(slot), "disk.img") }

// makeVolume makes the file system of a node's disk, if it is limited and the
// host can. It returns why not, for the node's log.
func (d *Driver) makeVolume(slot int, size capacity.MiB) (missing string, err error) {
	if size <= 0 {
		return "", nil
	}
	template, err := d.emptyVolume(max(size, minDisk))
	if err != nil {
		return err.Error(), nil
	}
	if err := copySparse(d.diskImage(slot), template); err != nil {
		return "", fmt.Errorf("make the node's disk: %w", err)
	}
	if err := d.tryVolume(slot); err != nil {
		return err.Error(), os.Remove(d.diskImage(slot))
	}
	return "", nil
}

// tryVolume sees, once, that the host can mount such disks.
func (d *Driver) tryVolume(slot int) error {
	d.volumeMu.Lock()
	defer d.volumeMu.Unlock()
	if d.volumesWork {
		return nil
	}
	volume, err := d.openVolume(slot)
	if err != nil {
		return err
	}
	d.volumesWork = true
	return volume.Close()
}

// emptyVolume makes an empty file system of a size, which disks are copies of.
func (d *Driver) emptyVolume(size capacity.MiB) (string, error) {
	d.volumeMu.Lock()
	defer d.volumeMu.Unlock()
	dir := d.state.in("volumes")
	name := filepath.Join(dir, strconv.FormatInt(int64(size), 10)+".ext4")
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	program, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		return "", errors.New("mkfs.ext4 is missing (package e2fsprogs)")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	tmp := name + ".tmp"
	defer os.Remove(tmp)
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	out, err := exec.Command(program, "-q", "-F", "-m", "0", "-J", "size="+journal, "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
		tmp, strconv.FormatInt(int64(size), 10)+"M").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("mkfs.ext4: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return name, os.Rename(tmp, name)
}

// copySparse copies a file with its holes.
func copySparse(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.Truncate(st.Size()); err != nil {
		return err
	}
	for at := int64(0); at < st.Size(); {
		begin, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole follows
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(int(in.Fd()), begin, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := in.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, end-begin); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// openVolume mounts a node's disk, for whoever gets the file that it returns
// and puts it to its place. It is nil for a node that has no volume. The
// node's lock is held, and it does not run.
func (d *Driver) openVolume(slot int) (*os.File, error) {
	image := d.diskImage(slot)
	if _, err := os.Stat(image); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	// A file system that is mounted twice, from two devices, is lost.
	for deadline := time.Now().Add(loopGone); ; time.Sleep(5 * time.Millisecond) {
		used, err := d.volumeUsed(slot)
		if err != nil {
			return nil, fmt.Errorf("mount the node's disk: %w", err)
		}
		if !used {
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("mount the node's disk: %s is still in use by an earlier run of the node", image)
		}
	}
	loop, err := attachLoop(image)
	if err != nil {
		return nil, fmt.Errorf("mount the node's disk: %w", err)
	}
	defer loop.Close()
	if err := os.WriteFile(d.loopFile(slot), []byte(filepath.Base(loop.Name())), 0o600); err != nil {
		return nil, fmt.Errorf("mount the node's disk: %w", err)
	}
	fd, err := mountDevice(loop.Name())
	if err != nil {
		return nil, fmt.Errorf("mount the node's disk: %w", err)
	}
	return os.NewFile(uintptr(fd), image), nil
}

// mountDevice mounts a device's ext4 file system at no place.
func mountDevice(device string) (int, error) {
	fs, err := unix.Fsopen("ext4", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("the kernel has no ext4: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigSetString(fs, "source", device); err != nil {
		return -1, err
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOATIME)
}

// loopFile tells the device that a node's disk was mounted from last.
func (d *Driver) loopFile(slot int) string { return filepath.Join(d.state.nodeDir(slot), "loop") }

// volumeUsed reports whether the kernel has not let go of a node's disk yet.
func (d *Driver) volumeUsed(slot int) (bool, error) {
	image := d.diskImage(slot)
	device, err := os.ReadFile(d.loopFile(slot))
	if err == nil {
		return backs(filepath.Join("/sys/block", filepath.Base(string(device))), image), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if _, err := os.Stat(filepath.Join(d.state.nodeDir(slot), "console.log")); errors.Is(err, os.ErrNotExist) {
		return false, nil // it has never been started
	}
	// A manager of before there were such files may have mounted it.
	devices, err := filepath.Glob("/sys/block/loop*")
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(devices, func(device string) bool { return backs(device, image) }), nil
}

// backs reports whether a block device is made of a file.
func backs(device, file string) bool {
	data, err := os.ReadFile(filepath.Join(device, "loop", "backing_file"))
	return err == nil && strings.TrimSpace(string(data)) == file
}

// attachLoop makes a block device of a file. The device goes when nothing uses
// it any more.
func attachLoop(file string) (*os.File, error) {
	image, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("the kernel has no loop devices (module loop): %w", err)
	}
	defer control.Close()
	for range loopTries {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("ask for a loop device: %w", err)
		}
		name := "/dev/loop" + strconv.Itoa(number)
		if err := ensureDevice(name, number); err != nil {
			return nil, err
		}
		device, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("open a loop device: %w", err)
		}
		config := unix.LoopConfig{Fd: uint32(image.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		copy(config.Info.File_name[:], file)
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return device, nil
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) { // somebody else was quicker
			return nil, fmt.Errorf("set up %s: %w", name, err)
		}
	}
	return nil, errors.New("others take all loop devices away")
}

// ensureDevice makes the node of a loop device where nothing else does, as in
// containers.
func ensureDevice(name string, number int) error {
	const major = 7
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err := unix.Mknod(name, unix.S_IFBLK|0o660, int(unix.Mkdev(major, uint32(number))))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make %s: %w", name, err)
	}
	return nil
}
