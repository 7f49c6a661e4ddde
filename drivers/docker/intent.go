package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"croft/drivers/internal/records"
)

// An engine goes on with a request whose client is gone: a container may come
// to be after the manager that wanted it has ended, and after the next one has
// looked. So what is being created is written down first, and what a manager
// finds written down when it starts it waits for.

// intent is a container that is being created.
type intent struct {
	Host  string
	Name  string
	Image string
}

const (
	intentPause = 50 * time.Millisecond
	intentTime  = 30 * time.Second
)

func (d *Driver) intents() string { return filepath.Join(d.cfg.Dir, "creating") }

func (d *Driver) intentFile(i intent) string {
	sum := sha256.Sum256([]byte(i.Host + "\x00" + i.Name))
	return filepath.Join(d.intents(), hex.EncodeToString(sum[:8])+".json")
}

// create creates a container.
func (d *Driver) create(ctx context.Context, h *host, conf client.ContainerCreateOptions) (id string, err error) {
	i := intent{Host: h.Name, Name: conf.Name, Image: conf.Config.Image}
	if err := records.Write(d.intentFile(i), i, false); err != nil {
		return "", err
	}
	c, err := h.api.ContainerCreate(ctx, conf)
	if err := h.saw(err); err != nil {
		if ctx.Err() != nil || client.IsErrConnectionFailed(err) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), intentTime)
			defer cancel()
			return "", errors.Join(err, d.undo(ctx, h, i))
		}
		return "", errors.Join(err, d.forget(i))
	}
	return c.ID, d.forget(i)
}

func (d *Driver) forget(i intent) error {
	if err := os.Remove(d.intentFile(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget what was created: %w", err)
	}
	return nil
}

// undo removes a container that may still come to be. Its name is taken from the
// moment on at which the engine begins with it: when the name can be had, there
// is nothing to wait for.
func (d *Driver) undo(ctx context.Context, h *host, i intent) error {
	conf := client.ContainerCreateOptions{
		Name:       i.Name,
		Config:     &container.Config{Image: i.Image, Entrypoint: []string{"/"}, Labels: d.labels(kindScratch)},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	}
	for {
		c, err := h.api.ContainerCreate(ctx, conf)
		switch {
		case err == nil:
			return errors.Join(h.discard(ctx, c.ID), d.forget(i))
		case errdefs.IsNotFound(err): // the image is gone
			return d.forget(i)
		case !errdefs.IsConflict(err):
			return h.saw(err)
		}
		if err := h.discard(ctx, i.Name); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait on Docker host %s for container %s, which is being created: %w", h.Name, i.Name, ctx.Err())
		case <-time.After(intentPause):
		}
	}
}

// undoAll removes what an earlier manager was creating on a host.
func (d *Driver) undoAll(ctx context.Context, h *host) error {
	files, err := filepath.Glob(filepath.Join(d.intents(), "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		var i intent
		err := records.Read(file, &i)
		if errors.Is(err, records.ErrNeverWritten) {
			err = os.Remove(file)
		}
		if err == nil && i.Host == h.Name && i.Name != "" {
			err = d.undo(ctx, h, i)
		}
		if err != nil {
			return fmt.Errorf("undo what was begun: %w", err)
		}
	}
	return nil
}
