package nodeinit

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// stdio is the stream of a subsystem: standard input and output.
type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (stdio) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

// serveFiles is the sftp subsystem. It has been started as the user, so that
// the kernel decides what the user may read and write.
func serveFiles() error {
	if err := closeOthers(2); err != nil {
		return err
	}
	srv, err := sftp.NewServer(stdio{})
	if err != nil {
		return fmt.Errorf("sftp: %w", err)
	}
	if err := srv.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("sftp: %w", err)
	}
	return nil
}
