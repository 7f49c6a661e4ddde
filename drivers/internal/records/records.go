// Package records keeps what a driver must know after a crash: small JSON
// files, each replaced in one step.
package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// ErrNeverWritten is what a power failure makes of a record that nobody waited
// for.
var ErrNeverWritten = errors.New("empty record")

// Read reads a record. One that is not there is an fs.ErrNotExist.
func Read(file string, into any) error {
	data, err := os.ReadFile(file)
	if err == nil && len(data) == 0 {
		err = ErrNeverWritten
	}
	if err != nil {
		return fmt.Errorf("read the state: %s: %w", file, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read the state: %s: %w", file, err)
	}
	return nil
}

// Write replaces a record in one step; a durable one has reached the disk
// when it returns.
func Write(file string, what any, durable bool) error {
	data, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	tmp := file + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	_, err = f.Write(data)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(tmp, file)
	}
	if err != nil {
		os.Remove(tmp)
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}
