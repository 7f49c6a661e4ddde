package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"croft/drivers/internal/nodeinit"
)

// image is what the driver knows of an image.
type image struct {
	id       string
	accounts []string // that it has
	sudo     bool     // its users can become root by sudo
	env      []string // NAME=value, of its programs
	command  []string // its entry point and its arguments
	dir      string   // that it runs them in
}

// maxPasswd bounds what is read of an image's accounts.
const maxPasswd = 1 << 20

// pullTime bounds a pull.
const pullTime = 20 * time.Minute

// errNoImage says that a host has not got an image.
var errNoImage = errors.New("there is no such image (docker pull or docker import it there, or set docker.pull)")

// pulled looks at an image of a host's, which is pulled before if it is missing
// and that is allowed.
func (d *Driver) pulled(ctx context.Context, h *host, name string) (*image, error) {
	i, err := d.image(ctx, h, name)
	if !d.cfg.Pull || !errors.Is(err, errNoImage) {
		return i, err
	}
	if err := d.pull(ctx, h, name); err != nil {
		return nil, fmt.Errorf("image %q: on Docker host %s: %w", name, h.Name, err)
	}
	return d.image(ctx, h, name)
}

// image looks at an image that a host has.
func (d *Driver) image(ctx context.Context, h *host, name string) (*image, error) {
	if name == "" {
		return nil, errors.New("no image: nodes of the driver docker need one (give the image in the inventory a source, such as \"debian:12\")")
	}
	r, err := h.api.ImageInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("image %q: on Docker host %s: %w", name, h.Name, errNoImage)
	}
	if err := h.saw(err); err != nil {
		return nil, fmt.Errorf("image %q: %w", name, err)
	}
	h.mu.Lock()
	known := h.images[r.ID]
	h.mu.Unlock()
	if known != nil {
		return known, nil
	}
	i := &image{id: r.ID, env: []string{}}
	if r.Config != nil {
		i.env = environment(r.Config.Env)
		i.command = append(slices.Clone(r.Config.Entrypoint), r.Config.Cmd...)
		i.dir = r.Config.WorkingDir
	}
	err = d.scratch(ctx, h, r.ID, "", func(id string) error { return h.look(ctx, id, i) })
	if err != nil {
		return nil, fmt.Errorf("look at image %q: %w", name, err)
	}
	h.mu.Lock()
	h.images[r.ID] = i
	h.mu.Unlock()
	return i, nil
}

func (d *Driver) pull(ctx context.Context, h *host, name string) error {
	d.log.Info("pulling an image", "host", h.Name, "image", name)
	limited, cancel := context.WithTimeoutCause(ctx, pullTime, fmt.Errorf("not there after %s (docker pull it on the host)", pullTime))
	defer cancel()
	r, err := h.api.ImagePull(limited, name, client.ImagePullOptions{})
	if err == nil {
		err = r.Wait(limited)
		r.Close()
	}
	switch {
	case err == nil:
		return nil
	case limited.Err() != nil && ctx.Err() == nil:
		err = context.Cause(limited)
	case client.IsErrConnectionFailed(err):
		return h.saw(err)
	case errdefs.IsNotFound(err):
		err = fmt.Errorf("%w (is the image's source right in the inventory, and open to everybody?)", err)
	default:
		err = fmt.Errorf("%w (does the Docker host reach the image's registry?)", err)
	}
	return fmt.Errorf("pulling it: %w", err)
}

// environment leaves out of an image's environment what is an account's own.
func environment(env []string) []string {
	out := []string{}
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if name != "" && !slices.Contains([]string{"HOME", "USER", "LOGNAME", "SHELL"}, name) {
			out = append(out, v)
		}
	}
	return out
}

// look reads what is to be known of an image in a container of it.
func (h *host) look(ctx context.Context, id string, i *image) error {
	passwd, err := h.read(ctx, id, "/etc/passwd", maxPasswd)
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("read its accounts: %w", err)
	}
	i.accounts = []string{"root"}
	for _, u := range nodeinit.ParsePasswd(passwd) {
		if u.Name != "root" {
			i.accounts = append(i.accounts, u.Name)
		}
	}
	// As the init sees whether users can have sudo.
	program, err := h.api.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: "/usr/bin/sudo"})
	if err == nil && program.Stat.Mode&fs.ModeSetuid != 0 {
		rules, err := h.api.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: "/etc/sudoers.d"})
		i.sudo = err == nil && rules.Stat.Mode.IsDir()
	}
	return nil
}

// read reads a file of a container, of which the engine makes an archive.
func (h *host) read(ctx context.Context, id, path string, limit int64) ([]byte, error) {
	r, err := h.api.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: path})
	if err != nil {
		return nil, err
	}
	if r.Stat.Mode&fs.ModeSymlink != 0 && r.Stat.LinkTarget != "" && r.Stat.LinkTarget != path {
		r.Content.Close()
		if r, err = h.api.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: r.Stat.LinkTarget}); err != nil {
			return nil, err
		}
	}
	defer r.Content.Close()
	files := tar.NewReader(r.Content)
	f, err := files.Next()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Typeflag != tar.TypeReg || f.Size > limit {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", path, limit)
	}
	data, err := io.ReadAll(io.LimitReader(files, limit))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// scratch makes a container that is never started, to look into an image or a
// volume, and removes it afterwards.
func (d *Driver) scratch(ctx context.Context, h *host, image, volume string, use func(id string) error) error {
	name := make([]byte, 6)
	if _, err := io.ReadFull(d.cfg.Rand, name); err != nil {
		return fmt.Errorf("make up a name: %w", err)
	}
	conf := client.ContainerCreateOptions{
		Name:       fmt.Sprintf("croft-%s-scratch-%x", d.scope, name),
		Config:     &container.Config{Image: image, Entrypoint: []string{"/"}, Labels: d.labels(kindScratch)},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	}
	if volume != "" {
		conf.HostConfig.Mounts = []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: nodeinit.BinaryDir,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true}}}
	}
	id, err := d.create(ctx, h, conf)
	if err != nil {
		return err
	}
	return errors.Join(use(id), h.discard(context.WithoutCancel(ctx), id))
}

// discard removes a container, in whatever state it is, with the volumes that
// its image declares.
func (h *host) discard(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, intentTime)
	defer cancel()
	for {
		_, err := h.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case errdefs.IsNotFound(err):
			return nil
		case !errdefs.IsConflict(err):
			return h.saw(err)
		}
		// Somebody else is removing it, a manager of before perhaps.
		select {
		case <-ctx.Done():
			return h.saw(errors.Join(err, ctx.Err()))
		case <-time.After(intentPause):
		}
	}
}
