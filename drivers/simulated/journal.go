package simulated

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"croft/drivers"
	"croft/request"
	"croft/urn"
)

// change is what happens to one thing: a line of the journal. What it does not
// say stays as it is.
type change struct {
	Sliver  urn.URN
	At      time.Time
	Note    string          `json:",omitempty"` // for the history
	Node    *drivers.Node   `json:",omitempty"` // it comes to be
	Link    *drivers.Link   `json:",omitempty"` // it comes to be
	Running *bool           `json:",omitempty"`
	Users   *[]request.User `json:",omitempty"`
	Gone    bool            `json:",omitempty"`
	History []string        `json:",omitempty"` // earlier notes, when the journal is written anew
}

func (c *change) apply(things map[urn.URN]*thing) {
	k := c.Sliver.Canonical()
	switch {
	case c.Gone:
		delete(things, k)
		return
	case c.Node != nil:
		things[k] = &thing{Sliver: c.Sliver, Kind: drivers.NodeKind, Node: c.Node, History: c.History}
	case c.Link != nil:
		things[k] = &thing{Sliver: c.Sliver, Kind: drivers.LinkKind, Link: c.Link, History: c.History}
	}
	t := things[k]
	if t == nil {
		return
	}
	if c.Running != nil {
		t.Running = *c.Running
	}
	if c.Users != nil && t.Node != nil {
		node := *t.Node // others may be reading it
		node.Users = *c.Users
		t.Node = &node
	}
	if c.Note != "" {
		t.History = append(t.History, c.At.Format(time.RFC3339)+" "+c.Note)
		t.History = t.History[max(0, len(t.History)-historyKept):]
	}
}

// journal is a file of changes, one on each line as JSON.
type journal struct {
	path  string
	file  *os.File
	size  int64 // of what is whole in the file
	lines int
}

// slack is how many more lines than things a journal has at most before it is
// written anew; large ones may have as many more as they have things.
const slack = 1000

// openJournal reads a journal, or makes it. A last line that is not whole is
// what a killed manager was writing: it did not happen.
func openJournal(path string, things map[urn.URN]*thing) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{path: path, file: f}
	if err := j.read(things); err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

func (j *journal) read(things map[urn.URN]*thing) error {
	r := bufio.NewReader(j.file)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		var c change
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("%s:%d: %w (move the file away to begin with no nodes)", j.path, j.lines+1, err)
		}
		c.apply(things)
		j.lines++
		j.size += int64(len(line))
	}
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	_, err := j.file.Seek(j.size, io.SeekStart)
	return err
}

// write adds a change to the journal. things is what was before it.
func (j *journal) write(c change, things map[urn.URN]*thing) error {
	if j.lines > 2*len(things)+slack {
		if err := j.renew(things); err != nil {
			return fmt.Errorf("writing the journal anew: %w", err)
		}
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if _, err := j.file.Write(line); err != nil {
		// Nothing half-written may stay before the next line.
		_, seekErr := j.file.Seek(j.size, io.SeekStart)
		return errors.Join(err, j.file.Truncate(j.size), seekErr)
	}
	j.size += int64(len(line))
	j.lines++
	return nil
}

// renew replaces the journal by one with a line for each thing.
func (j *journal) renew(things map[urn.URN]*thing) error {
	list := make([]*thing, 0, len(things))
	for _, t := range things {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *thing) int { return strings.Compare(a.Sliver.String(), b.Sliver.String()) })
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	for _, t := range list {
		if err := e.Encode(change{Sliver: t.Sliver, Node: t.Node, Link: t.Link, Running: &t.Running, History: t.History}); err != nil {
			return err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(j.path), ".simulated-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text.Bytes())
	if err == nil {
		err = os.Rename(f.Name(), j.path)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	old := j.file
	j.file, j.size, j.lines = f, int64(text.Len()), len(list)
	return old.Close()
}

// close may be called again.
func (j *journal) close() error {
	if err := j.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
