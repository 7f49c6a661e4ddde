package nodeinit

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
)

// console is a log file that keeps its newest part when it reaches its bound.
// The file is open for appending, so that the driver can add lines of its own.
type console struct {
	mu    sync.Mutex
	file  *os.File
	bound int64
}

// boundConsole bounds what is written through it to the file.
func boundConsole(f *os.File, bound int64) *console {
	return &console{file: f, bound: max(bound, 64<<10)}
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st, err := c.file.Stat(); err == nil && st.Size()+int64(len(p)) > c.bound {
		if err := c.shorten(st.Size()); err != nil {
			return 0, err
		}
	}
	return c.file.Write(p)
}

// shorten drops the older half, up to the end of a line.
func (c *console) shorten(size int64) error {
	keep := make([]byte, c.bound/2)
	n, err := c.file.ReadAt(keep, max(0, size-int64(len(keep))))
	if err != nil && err != io.EOF {
		return fmt.Errorf("shorten the console log: %w", err)
	}
	keep = keep[:n]
	if i := bytes.IndexByte(keep, '\n'); i >= 0 {
		keep = keep[i+1:]
	}
	if err := c.file.Truncate(0); err != nil {
		return fmt.Errorf("shorten the console log: %w", err)
	}
	_, err = c.file.Write(keep)
	return err
}
