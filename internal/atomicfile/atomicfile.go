// Package atomicfile writes files that are there whole or not at all, also
// after a power loss.
package atomicfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes or replaces a file.
func Write(path string, data []byte, mode fs.FileMode) error {
	return write(path, data, mode, os.Rename)
}

// Create makes a file; if it exists already, it is left alone and the error is
// fs.ErrExist.
func Create(path string, data []byte, mode fs.FileMode) error {
	return write(path, data, mode, func(temp, path string) error {
		// A hard link, other than a rename, never replaces what is there.
		if err := os.Link(temp, path); err != nil {
			return err
		}
		return os.Remove(temp)
	})
}

func write(path string, data []byte, mode fs.FileMode, publish func(temp, path string) error) (err error) {
	dir := filepath.Dir(path)
	// CreateTemp makes files of mode 0600: nobody reads a key meanwhile.
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			temp.Close()
			os.Remove(temp.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if _, err = temp.Write(data); err != nil {
		return err
	}
	if err = temp.Chmod(mode); err != nil {
		return err
	}
	if err = temp.Sync(); err != nil {
		return err
	}
	if err = temp.Close(); err != nil {
		return err
	}
	if err = publish(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the name of a new file last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
