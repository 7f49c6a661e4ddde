package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"croft/internal/atomicfile"
)

func TestWriteReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"one", "two"} {
		if err := atomicfile.Write(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		check(t, path, text, 0o640)
	}
}

func TestCreateNeverReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := atomicfile.Create(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Create(path, []byte("two"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Create: %v, want fs.ErrExist", err)
	}
	check(t, path, "one", 0o600)
}

func TestCreateHasOneWinner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var wg sync.WaitGroup
	won := make(chan string, 16)
	for i := range cap(won) {
		wg.Go(func() {
			text := strconv.Itoa(i)
			if err := atomicfile.Create(path, []byte(text), 0o600); err == nil {
				won <- text
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d callers made the file", len(won))
	}
	check(t, path, <-won, 0o600)
}

func TestNoFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "f")
	if err := atomicfile.Write(path, nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

// check also sees to it that nothing else lies in the folder.
func check(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != text {
		t.Errorf("file holds %q, want %q", data, text)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != mode {
		t.Errorf("file has mode %v, want %v", info.Mode().Perm(), mode)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("folder holds %v", entries)
	}
}
