package nodeinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Where the binary and its libraries lie inside the node, so that file
// transfers can run it again whatever the image is.
const (
	binDir     = "/run/croft"
	binaryPath = binDir + "/" + Binary
	libDir     = binDir + "/" + Libraries
)

// staging is a directory that every host has. The node mounts over it in its
// own mount namespace before it leaves the host's tree; the host's is not
// touched.
const staging = "/tmp"

// boot builds the node's file system, moves into it and becomes StageRun.
// It runs in fresh namespaces, as root of a user namespace that the host's
// root is not part of. It answers to SyncFD when it fails.
func boot() error {
	// Credentials, namespaces and filters below belong to a thread; exec
	// makes this one the process.
	runtime.LockOSThread()
	if err := closeOthers(SyncFD); err != nil {
		return err
	}
	err := build() // returns only if it fails
	answer(AnswerFailure, err.Error())
	return err
}

func build() error {
	msg, cfg, err := receive()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("take the mounts apart from the host's: %w", err)
	}
	// procfs, sysfs and devices are made while the host's are still in
	// sight: the kernel gives them to a user namespace only then.
	kernel, err := openKernelMounts()
	if err != nil {
		return err
	}
	if err := enterRoot(msg, cfg); err != nil {
		return err
	}
	if err := kernel.attach(); err != nil {
		return err
	}
	if err := placeBinary(msg, cfg); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(cfg.Hostname)); err != nil {
		return fmt.Errorf("set the host name %q: %w", cfg.Hostname, err)
	}
	if err := replaceInput(); err != nil {
		return err
	}
	unix.Umask(0o022)
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("make a cgroup namespace: %w", err)
	}
	// A session keyring would be the manager's. Kernels without keys have none.
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("leave the manager's keyring: %w", err)
	}
	if err := filterSystemCalls(); err != nil {
		return err
	}
	if err := keepFD(msg.Config, configFD); err != nil {
		return err
	}
	if err := keepFD(msg.Control, controlFD); err != nil {
		return err
	}
	if err := keepFD(SyncFD, SyncFD); err != nil {
		return err
	}
	argv := selfCommand(len(cfg.Libraries) > 0, StageRun)
	env := []string{"PATH=" + rootPath, "HOME=/root", "LANG=C.UTF-8", "GODEBUG=netdns=go", "GOGC=50"}
	return fmt.Errorf("run %s: %w", argv[0], unix.Exec(argv[0], argv, env))
}

// replaceInput makes the node's own /dev/null standard input.
func replaceInput() error {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the node's /dev/null: %w", err)
	}
	defer unix.Close(null)
	return keepFD(null, 0)
}

// closeOthers closes every descriptor above last, except those that the Go
// runtime has opened for itself.
func closeOthers(last int) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("look for inherited files: %w", err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= last {
			continue
		}
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.HasPrefix(to, "anon_inode:[event") {
			continue
		}
		unix.Close(fd)
	}
	return nil
}

// receive reads what the driver sends. It fails when the driver is gone.
func receive() (Message, Config, error) {
	var msg Message
	var cfg Config
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(250*4))
	n, oobn, flags, _, err := unix.Recvmsg(SyncFD, buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return msg, cfg, fmt.Errorf("the driver ended before it sent the node's layers: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return msg, cfg, errors.New("the driver sent more layers than fit")
	}
	controls, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(controls) != 1 {
		return msg, cfg, fmt.Errorf("the driver sent no layers: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	fds, err := unix.ParseUnixRights(&controls[0])
	if err != nil || len(fds) < 4 {
		return msg, cfg, fmt.Errorf("the driver sent no layers: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	msg = Message{Config: fds[0], Control: fds[1], Disk: fds[2], Executable: fds[3]}
	if err := readConfig(msg.Config, &cfg); err != nil {
		return msg, cfg, err
	}
	layers := 0
	for _, o := range cfg.Overlays {
		layers += o.Layers
	}
	if rest := len(fds) - 4; rest != len(cfg.Libraries)+layers || layers == 0 {
		return msg, cfg, fmt.Errorf("the driver sent %d files for %d libraries and %d layers", rest, len(cfg.Libraries), layers)
	}
	msg.Libraries, msg.Layers = fds[4:4+len(cfg.Libraries)], fds[4+len(cfg.Libraries):]
	return msg, cfg, nil
}

func readConfig(fd int, cfg *Config) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("read the node's configuration: %w", err)
	}
	data := make([]byte, st.Size)
	if _, err := unix.Pread(fd, data, 0); err != nil {
		return fmt.Errorf("read the node's configuration: %w", err)
	}
	if err := json.Unmarshal(data, cfg); err != nil {
		return fmt.Errorf("read the node's configuration: %w", err)
	}
	return nil
}

// enterRoot mounts the overlays and makes the first of them the root; the
// host's tree is gone afterwards.
func enterRoot(msg Message, cfg Config) error {
	if err := unix.Mount("stage", staging, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=256k,mode=700"); err != nil {
		return fmt.Errorf("mount a place to build the root at: %w", err)
	}
	stage := func(fd int, name string) (string, error) {
		at := staging + "/" + name
		if err := os.Mkdir(at, 0o700); err != nil {
			return "", fmt.Errorf("stage %s: %w", name, err)
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return "", fmt.Errorf("stage %s: %w", name, err)
		}
		return at, unix.Close(fd)
	}
	disk, err := stage(msg.Disk, "d")
	if err != nil {
		return err
	}
	next := 0
	mounts := make([]int, len(cfg.Overlays))
	for i, o := range cfg.Overlays {
		var lower []string
		for range o.Layers {
			at, err := stage(msg.Layers[next], strconv.Itoa(next))
			if err != nil {
				return err
			}
			lower = append(lower, at)
			next++
		}
		mounts[i], err = detached("overlay", 0,
			"lowerdir="+strings.Join(lower, ":"),
			"upperdir="+path.Join(disk, o.Disk, "upper"),
			"workdir="+path.Join(disk, o.Disk, "work"),
			"userxattr")
		if err != nil {
			return fmt.Errorf("mount %s: %w (the disk's file system must do for overlayfs: ext4, xfs, btrfs or tmpfs)", o.Target, err)
		}
	}
	root := staging + "/root"
	if err := os.Mkdir(root, 0o700); err != nil {
		return fmt.Errorf("stage the root: %w", err)
	}
	if err := unix.MoveMount(mounts[0], "", unix.AT_FDCWD, root, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("stage the root: %w", err)
	}
	unix.Close(mounts[0])
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	// The old root comes to lie on top of the new one and is taken off.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("make %s the root: %w", root, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("give up the host's tree: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	for i, o := range cfg.Overlays[1:] {
		if err := attach(mounts[i+1], o.Target); err != nil {
			return err
		}
	}
	return nil
}

// placeBinary puts the running binary, and what it takes to load it, into
// binDir, a part of the node's /run. The files are the host's and belong to
// nobody whom the node knows, so the node can't write to them.
func placeBinary(msg Message, cfg Config) error {
	if err := os.MkdirAll(libDir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", libDir, err)
	}
	if err := attachFile(msg.Executable, binaryPath); err != nil {
		return err
	}
	for i, name := range cfg.Libraries {
		if err := attachFile(msg.Libraries[i], path.Join(libDir, path.Base(name))); err != nil {
			return err
		}
	}
	if len(cfg.Libraries) > 0 {
		if err := os.Symlink(Libraries+"/"+path.Base(cfg.Libraries[0]), binDir+"/"+Loader); err != nil {
			return fmt.Errorf("place the loader: %w", err)
		}
	}
	return nil
}

// selfCommand returns the command line that runs a stage of this binary
// inside the node. A dynamically linked one is run through its own loader,
// because the image may have another or none.
func selfCommand(dynamic bool, stage string) []string {
	if dynamic {
		return []string{binDir + "/" + Loader, "--library-path", libDir, binaryPath, Word, stage}
	}
	return []string{binaryPath, Word, stage}
}

// keepFD moves a descriptor to the number to, to stay open over exec.
func keepFD(fd, to int) error {
	if fd != to {
		if err := unix.Dup3(fd, to, 0); err != nil {
			return fmt.Errorf("keep file %d: %w", to, err)
		}
		return nil
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("keep file %d: %w", to, err)
	}
	return nil
}

// answer tells the driver how the boot went.
func answer(kind byte, text string) error {
	_, err := unix.SendmsgN(SyncFD, append([]byte{kind}, text...), nil, nil, unix.MSG_NOSIGNAL)
	return err
}
