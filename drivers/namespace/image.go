package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"croft/drivers/internal/nodeinit"
)

// overlay is one overlay of a node's file system, before its layers are open.
type overlay struct {
	target string
	disk   string
	layers []string
}

// image resolves the image of a node. The generated part of the fall-back
// image is named by system.
func (d *Driver) image(name string) (overlays []overlay, system string, err error) {
	if name == "" {
		return d.system()
	}
	if d.cfg.Images == nil {
		return nil, "", fmt.Errorf("image %q: this host has no images besides its own system (ask for none)", name)
	}
	dir, err := d.cfg.Images(name)
	if err != nil {
		return nil, "", fmt.Errorf("image %q: %w", name, err)
	}
	if dir, err = d.checkImage(dir); err != nil {
		return nil, "", fmt.Errorf("image %q: %w", name, err)
	}
	return []overlay{{target: "/", disk: "root", layers: []string{dir}}}, "", nil
}

// checkImage refuses directories that would show a node what it must not see.
func (d *Driver) checkImage(dir string) (string, error) {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return "", err
	}
	if st, err := os.Stat(real); err != nil || !st.IsDir() {
		return "", errors.Join(fmt.Errorf("%s is not a directory", real), err)
	}
	for _, p := range d.protected {
		if within(p, real) {
			return "", fmt.Errorf("%s holds %s, which no node may see (an image is a directory of its own, never the host's root)", real, p)
		}
	}
	return real, nil
}

// within reports whether a path is, or lies below, dir.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// imageAccounts lists the accounts that an image has.
func (d *Driver) imageAccounts(name string) ([]string, error) {
	passwd := []byte(systemPasswd)
	if name != "" {
		overlays, _, err := d.image(name)
		if err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(overlays[0].layers[0])
		if err != nil {
			return nil, fmt.Errorf("image %q: %w", name, err)
		}
		defer root.Close()
		passwd, err = root.ReadFile("etc/passwd")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("image %q: %w", name, err)
		}
	}
	names := []string{"root"}
	for _, u := range nodeinit.ParsePasswd(passwd) {
		if u.Name != "root" {
			names = append(names, u.Name)
		}
	}
	return names, nil
}

// makeDisk makes the directories that take a node's changes. They belong to
// the node's root, who is nobody on the host, and so does on the host what the
// node writes: also a program that it marks to run as its owner.
func makeDisk(dir string, overlays []overlay, owner int) error {
	give := func(at string) error {
		err := os.MkdirAll(at, 0o755)
		if err == nil {
			err = os.Lchown(at, owner, owner)
		}
		if err != nil {
			return fmt.Errorf("make the node's disk: %w", err)
		}
		return nil
	}
	for _, o := range overlays {
		top := filepath.Join(dir, o.disk)
		for _, at := range []string{dir, top, filepath.Join(top, "upper"), filepath.Join(top, "work")} {
			if err := give(at); err != nil {
				return err
			}
		}
		if st, err := os.Stat(o.layers[len(o.layers)-1]); err == nil {
			// The upper directory decides how the whole one looks.
			if err := os.Chmod(filepath.Join(dir, o.disk, "upper"), st.Mode().Perm()|0o055); err != nil {
				return fmt.Errorf("make the node's disk: %w", err)
			}
		}
	}
	return nil
}

// openLayers opens the layers of all overlays for a user namespace.
func openLayers(overlays []overlay, pid int) (conf []nodeinit.Overlay, fds []int, err error) {
	ns, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open the node's user namespace: %w", err)
	}
	defer unix.Close(ns)
	for _, o := range overlays {
		for _, dir := range o.layers {
			fd, err := layer(dir, ns)
			if err != nil {
				closeFDs(fds)
				return nil, nil, err
			}
			fds = append(fds, fd)
		}
		conf = append(conf, nodeinit.Overlay{Target: o.target, Disk: o.disk, Layers: len(o.layers)})
	}
	return conf, fds, nil
}
