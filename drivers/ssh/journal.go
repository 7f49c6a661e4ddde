package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"croft/drivers"
	"croft/internal/atomicfile"
	"croft/urn"
)

// record is what the journal has of a node or a link: what it should be. It is
// written before a machine is touched and goes after that.
type record struct {
	Sliver  urn.URN
	Since   time.Time
	Node    *drivers.Node `json:",omitempty"`
	Link    *drivers.Link `json:",omitempty"`
	Whole   bool          // made
	Running bool          // nodes: started
}

// journal is a directory with a file for each node and link, one for each
// machine whose image is known, and the logs of nodes.
type journal struct {
	dir string
	now func() time.Time

	mu      sync.Mutex
	records map[urn.URN]record // by canonical sliver
	images  map[string]string  // by name of the machine
}

const (
	maxRecord = 4 << 20
	maxLog    = 1 << 20
)

func openJournal(dir string, now func() time.Time) (*journal, error) {
	j := &journal{dir: dir, now: now, records: map[urn.URN]record{}, images: map[string]string{}}
	for _, sub := range []string{"slivers", "images", "logs", commandsDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	err := j.each("slivers", func(_ string, text []byte) error {
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		if r.Node == nil && r.Link == nil {
			return errors.New("neither a node nor a link")
		}
		j.records[r.Sliver.Canonical()] = r
		return nil
	})
	if err != nil {
		return nil, err
	}
	return j, j.each("images", func(name string, text []byte) error {
		j.images[name] = string(text)
		return nil
	})
}

// each reads the files of a directory of the journal. What an atomic write did
// not finish has a name with a dot before it.
func (j *journal) each(sub string, read func(name string, text []byte) error) error {
	entries, err := os.ReadDir(filepath.Join(j.dir, sub))
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := filepath.Join(j.dir, sub, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			if err := os.Remove(file); err != nil {
				return err
			}
			continue
		}
		if info, err := e.Info(); err != nil || info.Size() > maxRecord {
			return fmt.Errorf("%s: not a record of the journal", file)
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = read(e.Name(), text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w (move the file away to forget it)", file, err)
		}
	}
	return nil
}

func fileName(sliver urn.URN) string {
	sum := sha256.Sum256([]byte(sliver.Canonical().String()))
	return hex.EncodeToString(sum[:16])
}

func (j *journal) get(sliver urn.URN) (record, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.records[sliver.Canonical()]
	return r, ok
}

// all lists the records in no order.
func (j *journal) all() []record {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := make([]record, 0, len(j.records))
	for _, r := range j.records {
		list = append(list, r)
	}
	return list
}

// put writes a record.
func (j *journal) put(r record) error {
	if r.Since.IsZero() {
		r.Since = j.now().UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := atomicfile.Write(filepath.Join(j.dir, "slivers", fileName(r.Sliver)), text, 0o600); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.records[r.Sliver.Canonical()] = r
	return nil
}

// drop removes a record and the log that goes with it.
func (j *journal) drop(sliver urn.URN) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, file := range []string{j.logFile(sliver), filepath.Join(j.dir, "slivers", fileName(sliver))} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("journal: %w", err)
		}
	}
	delete(j.records, sliver.Canonical())
	return nil
}

// image is what is on a machine as far as it is known.
func (j *journal) image(m *Machine) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if image, known := j.images[fileName(m.Host)]; known {
		return image
	}
	return m.Image
}

func (j *journal) setImage(m *Machine, image string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	name := fileName(m.Host)
	if err := atomicfile.Write(filepath.Join(j.dir, "images", name), []byte(image), 0o600); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.images[name] = image
	return nil
}

func (j *journal) logFile(sliver urn.URN) string {
	return filepath.Join(j.dir, "logs", fileName(sliver))
}

// appendLog adds to a node's log, which keeps its beginning when it is full.
func (j *journal) appendLog(sliver urn.URN, text []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.records[sliver.Canonical()]; !known {
		return nil
	}
	f, err := os.OpenFile(j.logFile(sliver), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if st, err := f.Stat(); err == nil && st.Size() > maxLog {
		return f.Close()
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
