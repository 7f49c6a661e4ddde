package docker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"croft/drivers"
	"croft/drivers/docker"
	"croft/urn"
)

// What a real engine's image runs is told, and running it in a node of the
// image does that.
func TestImageCommand(t *testing.T) {
	e := need(t, smallImage)
	r := newRig(t, docker.Config{})
	for i, c := range []struct {
		name     string
		changes  []string
		dir      string
		says     string // what it writes; "" for an image that runs nothing
		elements int
	}{
		{"entry point and arguments", []string{"WORKDIR /tmp", `ENTRYPOINT ["/bin/sh","-c","echo $0 $1 in $(pwd)"]`, `CMD ["one","two words"]`}, "/tmp", "one two words in /tmp", 5},
		{"command alone", []string{`CMD ["/bin/echo","a command"]`}, "", "a command", 2},
		{"command in a shell", []string{"CMD echo $FROM_SHELL by a shell", "ENV FROM_SHELL=said"}, "", "said by a shell", 3},
		{"nothing", nil, "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			image := fmt.Sprintf("croft-test/command:%d", i)
			content, w := io.Pipe()
			go func() { w.CloseWithError(writeImage(w, smallImage)) }()
			answer, err := e.api.ImageImport(t.Context(), client.ImageImportSource{Source: content, SourceName: "-"}, image, client.ImageImportOptions{Changes: c.changes})
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, answer)
			answer.Close()
			if err != nil {
				t.Fatal(err)
			}
			args, dir, err := r.d.ImageCommand(t.Context(), urn.URN{}, image)
			if err != nil || len(args) != c.elements || dir != c.dir {
				t.Fatalf("%q in %q, %v; want %d words in %q", args, dir, err, c.elements, c.dir)
			}
			if c.says == "" {
				return
			}
			n := r.up(r.node(fmt.Sprintf("command%d", i), image))
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			in := append([]string{"/bin/sh", "-c", `cd "$0" && exec "$@"`, c.dir + "/"}, args...)
			if err := r.d.Exec(ctx, n.Sliver, drivers.Command{Args: in, Stdout: &out, Stderr: &out}); err != nil || strings.TrimSpace(out.String()) != c.says {
				t.Errorf("it wrote %q, %v; want %q", out.String(), err, c.says)
			}
		})
	}
}
