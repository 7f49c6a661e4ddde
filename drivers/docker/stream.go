package docker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/moby/moby/api/pkg/stdcopy"

	"croft/drivers/internal/nodeinit"
)

// stream is the input and output of a program in a container. The engine sends
// output as frames with a header of 8 bytes: the stream, three zeros, and the
// length.
type stream struct {
	net.Conn
	in *bufio.Reader

	reading sync.Mutex
	header  [8]byte
	got     int    // bytes of the header that have come
	left    uint32 // of the frame
	errs    []byte // what came on standard error, its beginning
}

// maxErrors bounds what is kept of standard error.
const maxErrors = 2 << 10

// Read reads standard output.
func (s *stream) Read(p []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if err := s.frame(); err != nil {
			return 0, err
		}
		part := p[:min(len(p), int(s.left))]
		if s.header[0] == byte(stdcopy.Stdout) {
			n, err := s.in.Read(part)
			s.left -= uint32(n)
			return n, err
		}
		n, err := s.in.Read(part)
		s.left -= uint32(n)
		s.errs = append(s.errs, part[:min(n, maxErrors-len(s.errs))]...)
		if err != nil {
			return 0, err
		}
	}
}

// frame reads headers until there is a frame with content.
func (s *stream) frame() error {
	for s.left == 0 {
		for s.got < len(s.header) {
			n, err := s.in.Read(s.header[s.got:])
			s.got += n
			if err != nil {
				if errors.Is(err, io.EOF) && s.got > 0 {
					return io.ErrUnexpectedEOF
				}
				return err
			}
		}
		s.got, s.left = 0, binary.BigEndian.Uint32(s.header[4:])
	}
	return nil
}

// CloseWrite ends the program's input.
func (s *stream) CloseWrite() error {
	if c, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// greet reads the first byte of nodeinit.StageConnect, and why it could not
// connect.
func (s *stream) greet() error {
	kind := make([]byte, 1)
	if _, err := io.ReadFull(s, kind); err != nil {
		return fmt.Errorf("the program that connects inside ended: %w: %s", err, tidy(s.errs))
	}
	if kind[0] == nodeinit.AnswerReady {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(s, maxErrors))
	return errors.New(tidy(append(kind, text...)[1:]))
}

func tidy(text []byte) string { return strings.ToValidUTF8(strings.TrimSpace(string(text)), "?") }
