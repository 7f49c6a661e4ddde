package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"croft/drivers/internal/records"
)

// An engine also goes on stopping and removing a container when its client is
// gone: the next manager would find the node running, and a moment later it
// would not be. So what is being ended is written down, too, and the next
// manager ends it first.

// ending is a container that is being stopped or removed.
type ending struct {
	Host   string
	ID     string
	Remove bool
}

// endAtOnce bounds how many an adopting manager ends at a time.
const endAtOnce = 16

func (d *Driver) endings() string { return filepath.Join(d.cfg.Dir, "ending") }

// endingFile keeps the two apart: what is being stopped may be removed
// meanwhile.
func (d *Driver) endingFile(e ending) string {
	what := "stop"
	if e.Remove {
		what = "remove"
	}
	return filepath.Join(d.endings(), e.ID+"."+what+".json")
}

// end stops a container, asked for at most grace, or removes it.
func (d *Driver) end(ctx context.Context, h *host, e ending, grace time.Duration) error {
	if err := records.Write(d.endingFile(e), e, false); err != nil {
		return err
	}
	err := h.end(ctx, e, grace)
	// Who is told of a failure tries again; nobody tells the next manager.
	return errors.Join(err, d.ended(e))
}

func (h *host) end(ctx context.Context, e ending, grace time.Duration) error {
	if e.Remove {
		return h.discard(ctx, e.ID)
	}
	seconds := int(grace / time.Second)
	_, err := h.api.ContainerStop(ctx, e.ID, client.ContainerStopOptions{Timeout: &seconds})
	if errdefs.IsNotModified(err) {
		return nil
	}
	return h.saw(err)
}

func (d *Driver) ended(e ending) error {
	if err := os.Remove(d.endingFile(e)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget what was ended: %w", err)
	}
	return nil
}

// endAll ends what an earlier manager was ending on a host.
func (d *Driver) endAll(ctx context.Context, h *host) error {
	files, err := filepath.Glob(filepath.Join(d.endings(), "*.json"))
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	slots, errs := make(chan struct{}, endAtOnce), make([]error, len(files))
	for i, file := range files {
		slots <- struct{}{}
		all.Go(func() {
			errs[i] = d.endAgain(ctx, h, file)
			<-slots
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end what was being ended: %w", err)
	}
	return nil
}

// endAgain ends what a file says, if it is on the host.
func (d *Driver) endAgain(ctx context.Context, h *host, file string) error {
	var e ending
	err := records.Read(file, &e)
	if errors.Is(err, records.ErrNeverWritten) {
		return os.Remove(file)
	}
	if err != nil || e.Host != h.Name || e.ID == "" {
		return err
	}
	if err := h.end(ctx, e, stopGrace); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return d.ended(e)
}
