package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"croft/drivers/internal/nodeinit"
)

// placedMark is the file of a volume that says that the rest is there.
const placedMark = "complete"

// volume names the volume with the nodes' init, by its content, so
// that nodes of another version of this program keep theirs.
func (d *Driver) volume() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.volumeName != "" {
		return d.volumeName, nil
	}
	sum := sha256.New()
	for _, f := range d.programFiles() {
		in, err := os.Open(f.from)
		if err != nil {
			return "", fmt.Errorf("read the nodes' init: %w", err)
		}
		_, err = io.Copy(sum, in)
		in.Close()
		if err != nil {
			return "", fmt.Errorf("read the nodes' init: %w", err)
		}
	}
	d.volumeName = fmt.Sprintf("croft-%s-init-%s", d.scope, hex.EncodeToString(sum.Sum(nil)[:6]))
	return d.volumeName, nil
}

// programFile is a file of the volume, and where it is from.
type programFile struct{ name, from string }

func (d *Driver) programFiles() []programFile {
	files := []programFile{{nodeinit.Binary, fmt.Sprintf("/proc/self/fd/%d", d.program.File.Fd())}}
	for _, l := range d.program.Libraries {
		files = append(files, programFile{nodeinit.Libraries + "/" + filepath.Base(l), l})
	}
	return files
}

// place sees to it that the host has the volume with the nodes' init. The
// caller holds h.shared for reading. An image is needed, any, because a volume
// is written to through a container.
func (d *Driver) place(ctx context.Context, h *host, image string) (volume string, err error) {
	if volume, err = d.volume(); err != nil {
		return "", err
	}
	h.placing.Lock()
	defer h.placing.Unlock()
	if h.placed {
		// Somebody may have tidied up by hand.
		_, err := h.api.VolumeInspect(ctx, volume, client.VolumeInspectOptions{})
		if !errdefs.IsNotFound(err) {
			return volume, h.saw(err)
		}
	}
	_, err = h.api.VolumeCreate(ctx, client.VolumeCreateOptions{Name: volume, Labels: map[string]string{labelManager: d.cfg.Manager.String()}})
	if err := h.saw(err); err != nil {
		return "", fmt.Errorf("make the volume of the nodes' init: %w", err)
	}
	err = d.scratch(ctx, h, image, volume, func(id string) error {
		_, err := h.api.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: nodeinit.BinaryDir + "/" + placedMark})
		if err == nil || !errdefs.IsNotFound(err) {
			return err
		}
		content, w := io.Pipe()
		go func() { w.CloseWithError(d.writeProgram(w)) }()
		_, err = h.api.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: nodeinit.BinaryDir, Content: content})
		content.CloseWithError(errors.New("the engine reads no more"))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("place the nodes' init: %w", err)
	}
	h.placed = true
	return volume, nil
}

// writeProgram archives the nodes' init, the mark last.
func (d *Driver) writeProgram(w io.Writer) error {
	out := tar.NewWriter(w)
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: nodeinit.Libraries + "/", Mode: 0o755}); err != nil {
		return err
	}
	for _, f := range d.programFiles() {
		if err := writeFile(out, f); err != nil {
			return fmt.Errorf("read the nodes' init: %w", err)
		}
	}
	if len(d.program.Libraries) > 0 {
		to := nodeinit.Libraries + "/" + filepath.Base(d.program.Libraries[0])
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: nodeinit.Loader, Linkname: to, Mode: 0o777}); err != nil {
			return err
		}
	}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: placedMark, Mode: 0o444}); err != nil {
		return err
	}
	return out.Close()
}

func writeFile(out *tar.Writer, f programFile) error {
	in, err := os.Open(f.from)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o755, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(out, in, st.Size())
	return err
}

// sweep removes the volumes that no container uses.
func (d *Driver) sweep(ctx context.Context, h *host) error {
	// While a node is made, its volume is in use by nothing yet.
	h.shared.Lock()
	defer h.shared.Unlock()
	filters := make(client.Filters).Add("label", labelManager+"="+d.cfg.Manager.String())
	list, err := h.api.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err := h.saw(err); err != nil {
		return err
	}
	current, err := d.volume()
	if err != nil {
		return err
	}
	for _, v := range list.Items {
		_, err := h.api.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{})
		switch {
		case errdefs.IsConflict(err), errdefs.IsNotFound(err):
		case err != nil:
			return h.saw(err)
		case v.Name == current:
			h.placed = false
		}
	}
	return nil
}
