package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"croft/internal/atomicfile"
)

// ErrNoRecord says that there is no record of a name.
var ErrNoRecord = errors.New("there is no such thing, or it is somebody else's")

// Records is where a face keeps what it has to remember beside the slivers: a
// small JSON document for each thing, in folders by owners. What was put
// survives a crash. The slivers are in the aggregate's own store.
type Records struct{ dir string }

// OpenRecords opens a folder for the records of one face.
func OpenRecords(dir string) (*Records, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	return &Records{dir}, nil
}

var recordName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func (r *Records) path(owner, name string) (string, error) {
	if !recordName.MatchString(owner) || !recordName.MatchString(name) {
		return "", ErrNoRecord
	}
	return filepath.Join(r.dir, owner, name+".json"), nil
}

// Get reads a record into v, or returns ErrNoRecord.
func (r *Records) Get(owner, name string, v any) error {
	path, err := r.path(owner, name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoRecord
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("record %s of %s: %w", name, owner, err)
	}
	return nil
}

// Put writes a record, over the one before.
func (r *Records) Put(owner, name string, v any) error {
	path, err := r.path(owner, name)
	if err != nil {
		return fmt.Errorf("record %q of %q: not a name for one", name, owner)
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record %s of %s: %w", name, owner, err)
	}
	return nil
}

// Delete removes a record. One that is not there is no error.
func (r *Records) Delete(owner, name string) error {
	path, err := r.path(owner, name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record %s of %s: %w", name, owner, err)
	}
	return nil
}

// List names the records of an owner, in order.
func (r *Records) List(owner string) ([]string, error) {
	if !recordName.MatchString(owner) {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(r.dir, owner))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("records of %s: %w", owner, err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && recordName.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
