package e2e

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// imageRegistry is a registry of container images, and what it was asked for.
type imageRegistry struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	held  chan struct{} // answers wait until it is closed
}

func newImageRegistry(t *testing.T) *imageRegistry {
	r := &imageRegistry{held: make(chan struct{})}
	close(r.held)
	serve := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, q.URL.Path)
		held := r.held
		r.mu.Unlock()
		select {
		case <-held:
			serve.ServeHTTP(w, q)
		case <-q.Context().Done():
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// hold lets further answers wait until the result is called.
func (r *imageRegistry) hold() (release func()) {
	held := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = held
	return sync.OnceFunc(func() { close(held) })
}

// taken lists what it was asked for since the last time.
func (r *imageRegistry) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.asked
	r.asked = nil
	return list
}

// Images that the inventory names are pulled from their registry, and no
// others.
func TestImageRegistry(t *testing.T) {
	t.Parallel()
	need(t, "ssh")
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: starting dockerd needs root (sudo go test …)")
	}
	e, err := startDocker(t)
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	r := newImageRegistry(t)
	address := r.Listener.Addr().String()
	docker := func(args ...string) {
		t.Helper()
		if out, err := e.docker(nil, args...); err != nil {
			t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	// The same image under three names, of which the inventory has one.
	for _, name := range []string{"listed", "unlisted"} {
		docker("tag", dockerImage, address+"/lab/"+name+":1")
		docker("push", "--quiet", address+"/lab/"+name+":1")
		docker("rmi", address+"/lab/"+name+":1")
	}
	docker("rmi", dockerImage)
	b := newFederation(t, setting{"# docker:", "docker: {pull: true, hosts: [{name: local, address: \"" + string(e) + "\"}]}\n# docker:"})
	b.write("inventory.yaml", fmt.Sprintf(`authority: %s
images:
  - {name: listed, source: "%s/lab/listed:1"}
  - {name: absent, source: "%s/lab/absent:1"}
sliver_types: [{name: box, driver: docker, images: [listed, absent], cores: 1, memory: 64MiB, disk: 64MiB}]
hosts: [{name: d1, sliver_types: [box], cores: 64, memory: 64GiB, disk: 64GiB, shared: true}]
`, authority, address, address))
	b.start()
	box := func(image string) string {
		return b.request(`<node client_id="n"><sliver_type name="box"><disk_image name="` + image + `"/></sliver_type></node>`)
	}

	// A pull takes as long as it takes: no call waits for it, and a manager
	// that was killed meanwhile goes on.
	release := r.hold()
	defer release()
	b.slice("first")
	b.must("allocate", "first", box("listed"))
	b.must("provision", "first")
	asked := func() bool { return len(r.taken()) > 0 }
	b.await("the registry to be asked", asked)
	b.kill()
	b.start()
	b.await("the registry to be asked again", asked)
	release()
	b.await("the node to be made", func() bool { return strings.Contains(b.must("status", "first"), " notready ") })
	b.must("action", "first", "geni_start")
	b.await("the node to be ready", func() bool { return strings.Contains(b.must("status", "first"), " ready ") })
	b.must("ssh", "first", "n", "--", "test -x /bin/busybox")

	b.slice("second")
	r.taken()
	for _, name := range []string{"unlisted", address + "/lab/unlisted:1", address + "/lab/unlisted@sha256:" + strings.Repeat("0", 64)} {
		b.refused("did you mean listed?", "allocate", "second", box(name))
	}
	b.refused("repository "+address+"/lab/absent not found", "up", "second", box("absent"))
	b.croft("delete", "second")
	for _, path := range r.taken() {
		if strings.Contains(path, "unlisted") {
			t.Errorf("the registry was asked for %s, which the inventory has not", path)
		}
	}

	// What is on the host needs no registry.
	r.Close()
	b.must("up", "second", box("listed"))
	b.must("delete", "first")
	b.must("delete", "second")
	b.await("containers to go", func() bool { return !strings.Contains(b.must("admin", "slivers"), "second") })
	docker("rmi", address+"/lab/listed:1")
	b.refused("connection refused", "up", "second", box("listed"))
}
