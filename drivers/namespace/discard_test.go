package namespace

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is discarded is out of the way at once, and deleted later: by the driver
// that has discarded it, or by the next one.
func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	s, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	d := &Driver{state: s, log: slog.New(slog.DiscardHandler), closing: make(chan struct{}), discarded: make(chan struct{}, 1)}
	writeTree(t, dir, map[string]string{"discarded/1-0/file": "", "nodes/1/disk/file": "", "nodes/2/disk/file": ""})
	discard := func(slot int) {
		t.Helper()
		if err := d.discard(slot); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(s.nodeDir(slot)); !os.IsNotExist(err) {
			t.Errorf("node %d is where it was: %v", slot, err)
		}
	}
	discard(1)
	d.background.Go(d.deleteDiscarded)
	discard(2)
	for range 200 { // whatever is just being deleted
		writeTree(t, dir, map[string]string{"nodes/1/disk/file": ""})
		discard(1)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		left, err := os.ReadDir(filepath.Join(dir, "discarded"))
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not deleted: %v", left)
		}
	}
	close(d.closing)
	d.background.Wait()
	if err := d.discard(3); err != nil {
		t.Errorf("a node that is not there: %v", err)
	}
}
