// Package archive reads archives that strangers send (tar, also compressed by
// gzip, bzip2 or xz, and zip) and writes what is in them as one plain tar that
// can be unpacked anywhere: bounded, and with nothing in it that leaves the
// directory.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
	"time"

	"github.com/xi2/xz"
)

// Limits bound an archive. Zero members have usual values.
type Limits struct {
	Bytes    int64 // of the archive itself
	Unpacked int64 // of all files in it
	Entries  int
	// Ratio is how many times larger than the archive its files may be, when
	// they are larger than Free: small files of zeros are no attack.
	Ratio int64
	Free  int64
}

// usual are the limits that hold where nothing else is said.
var usual = Limits{Bytes: 4 << 30, Unpacked: 16 << 30, Entries: 500_000, Ratio: 200, Free: 64 << 20}

func (l Limits) orUsual() Limits {
	if l.Bytes == 0 {
		l.Bytes = usual.Bytes
	}
	if l.Unpacked == 0 {
		l.Unpacked = usual.Unpacked
	}
	if l.Entries == 0 {
		l.Entries = usual.Entries
	}
	if l.Ratio == 0 {
		l.Ratio = usual.Ratio
	}
	if l.Free == 0 {
		l.Free = usual.Free
	}
	return l
}

// Error says why an archive is refused.
type Error struct{ What string }

func (e *Error) Error() string { return "the archive " + e.What }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Owner is whom the files belong to, as numbers of the machine that unpacks.
type Owner struct{ UID, GID int }

// Summary is what was in an archive.
type Summary struct {
	Format  string // "tar", "tar.gz", "tar.bz2", "tar.xz", "zip"
	Bytes   int64  // of the archive
	Entries int
	Size    int64 // of the files in it
}

// Convert reads an archive of whatever format and writes it as tar. What it
// has written when it returns an error is no whole archive. A zip is kept in a
// file of dir ("" for the system's own place) while it is read.
func Convert(to io.Writer, from io.Reader, owner Owner, limits Limits, dir string) (Summary, error) {
	c := &converter{out: tar.NewWriter(to), owner: owner, limits: limits.orUsual(), links: map[string]bool{}, files: map[string]bool{}}
	c.in = &counter{r: from, most: c.limits.Bytes}
	err := c.convert(dir)
	if err == nil {
		err = c.out.Close()
	}
	c.sum.Bytes = c.in.n
	return c.sum, err
}

type converter struct {
	in     *counter
	out    *tar.Writer
	owner  Owner
	limits Limits
	sum    Summary
	links  map[string]bool // symbolic links that stand
	files  map[string]bool // regular files that stand
}

// counter bounds what is read.
type counter struct {
	r       io.Reader
	n, most int64
	err     error // why no more could be read
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.n += int64(n); c.n > c.most {
		c.err = refuse("has more than %d bytes", c.most)
		return 0, c.err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// xzMemory bounds the dictionary of an xz: what xz -9 uses.
const xzMemory = 64 << 20

// tarBlock is the size of a block of a tar, where its magic stands.
const tarBlock = 512

func (c *converter) convert(dir string) error {
	in := bufio.NewReaderSize(c.in, 64<<10)
	start, err := in.Peek(tarBlock)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	begins := func(magic string) bool { return bytes.HasPrefix(start, []byte(magic)) }
	switch {
	case len(start) == 0:
		return refuse("is empty")
	case begins("\x1f\x8b"):
		z, err := gzip.NewReader(in)
		if err != nil {
			return refuse("is no gzip: %v", err)
		}
		return c.tar(z, "tar.gz")
	case begins("BZh"):
		return c.tar(bzip2.NewReader(in), "tar.bz2")
	case begins("\xfd7zXZ\x00"):
		z, err := xz.NewReader(in, xzMemory)
		if err != nil {
			return refuse("is no xz: %v", err)
		}
		return c.tar(z, "tar.xz")
	case begins("PK\x03\x04"), begins("PK\x05\x06"):
		return c.zip(in, dir)
	case len(start) == tarBlock && (string(start[257:262]) == "ustar" || isOldTar(start)):
		return c.tar(in, "tar")
	}
	return refuse("is of no format that is known: want tar, tar.gz, tar.bz2, tar.xz or zip")
}

// isOldTar reports whether a block is the header of a tar from before POSIX, or
// the end of an empty one: its checksum is right.
func isOldTar(block []byte) bool {
	_, err := tar.NewReader(bytes.NewReader(append(bytes.Clone(block), make([]byte, 2*tarBlock)...))).Next()
	return err == nil || bytes.Equal(block, make([]byte, tarBlock)) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (c *converter) tar(r io.Reader, format string) error {
	c.sum.Format = format
	in := tar.NewReader(&stream{c: c, r: r})
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.broken(err)
		}
		e := entry{name: h.Name, mode: fs.FileMode(h.Mode).Perm(), size: h.Size, target: h.Linkname, at: h.ModTime}
		switch h.Typeflag {
		case tar.TypeReg, 0, tar.TypeGNUSparse: // 0 is in old archives
			e.kind = tar.TypeReg
			if strings.HasSuffix(h.Name, "/") {
				e.kind = tar.TypeDir
			}
		case tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
			e.kind = h.Typeflag
		case tar.TypeXGlobalHeader:
			if c.sum.Entries++; c.sum.Entries > c.limits.Entries {
				return c.tooMany()
			}
			continue
		default:
			return refuse("has %q, which is neither a file, a directory nor a link", h.Name)
		}
		if err := c.put(e, in); err != nil {
			return err
		}
	}
}

// broken tells an archive that is damaged from one that could not be read.
func (c *converter) broken(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	if c.in.err != nil {
		return c.in.err
	}
	return refuse("is damaged: %v", err)
}

// zip keeps the archive in a file: its table of contents stands at its end.
func (c *converter) zip(r io.Reader, dir string) error {
	c.sum.Format = "zip"
	f, err := os.CreateTemp(dir, "croft-archive-*")
	if err != nil {
		return fmt.Errorf("keeping an archive: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	size, err := io.Copy(f, r)
	if err != nil {
		return err
	}
	contents := &budget{f: f, left: zipContents}
	in, err := zip.NewReader(contents, size)
	if err != nil {
		return c.broken(err)
	}
	contents.left = math.MaxInt64
	for _, m := range in.File {
		e := entry{name: strings.ReplaceAll(m.Name, `\`, "/"), mode: m.Mode().Perm(), size: int64(m.UncompressedSize64), at: m.Modified}
		switch {
		case m.Flags&1 != 0:
			return refuse("has %q, which is encrypted", m.Name)
		case m.UncompressedSize64 > uint64(c.limits.Unpacked):
			return c.tooLarge()
		case m.Mode().IsDir() || strings.HasSuffix(e.name, "/"):
			e.kind, e.size = tar.TypeDir, 0
			if e.mode == 0 {
				e.mode = 0o755
			}
		case m.Mode().Type() == fs.ModeSymlink:
			e.kind = tar.TypeSymlink
		case m.Mode().IsRegular():
			e.kind = tar.TypeReg
			if e.mode == 0 {
				e.mode = 0o644
			}
		default:
			return refuse("has %q, which is neither a file, a directory nor a link", m.Name)
		}
		if err := c.member(m, e); err != nil {
			return err
		}
	}
	return nil
}

// zipContents bounds the table of contents of a zip: it is read into memory.
const zipContents = 32 << 20

// budget bounds what is read of a file.
type budget struct {
	f    *os.File
	left int64
}

func (b *budget) ReadAt(p []byte, off int64) (int, error) {
	if b.left < math.MaxInt64 {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, refuse("has a table of contents of more than %d bytes", zipContents)
		}
	}
	return b.f.ReadAt(p, off)
}

func (c *converter) member(m *zip.File, e entry) error {
	content, err := m.Open()
	if err != nil {
		return c.broken(err)
	}
	defer content.Close()
	if e.kind == tar.TypeSymlink {
		target, err := io.ReadAll(io.LimitReader(content, maxName+1))
		if err != nil {
			return c.broken(err)
		}
		e.target, e.size = string(target), 0
	}
	return c.put(e, content)
}

// maxName bounds names and targets of links, as Linux does.
const maxName = 4095

// entry is a member of an archive.
type entry struct {
	kind   byte
	name   string
	mode   fs.FileMode
	size   int64
	target string
	at     time.Time
}

// put writes an entry that nothing speaks against.
func (c *converter) put(e entry, content io.Reader) error {
	name, err := c.inside(e.name)
	if err != nil {
		return err
	}
	if c.sum.Entries++; c.sum.Entries > c.limits.Entries {
		return c.tooMany()
	}
	if name == "." {
		return nil // the directory itself
	}
	h := &tar.Header{
		Typeflag: e.kind, Name: name, Mode: int64(e.mode), Uid: c.owner.UID, Gid: c.owner.GID, ModTime: e.at, Format: tar.FormatGNU,
	}
	if e.at.Unix() < 0 || e.at.Year() > 9999 {
		h.ModTime = time.Unix(0, 0)
	}
	switch e.kind {
	case tar.TypeDir:
		if c.links[name] {
			return nil // it stands for a directory; that it is one stays the link's matter
		}
		h.Name += "/"
		h.Mode |= 0o700 // what is in it must be written
	case tar.TypeSymlink:
		if e.target == "" || len(e.target) > maxName || strings.ContainsRune(e.target, 0) {
			return refuse("has a link %q to nowhere", e.name)
		}
		h.Linkname = e.target
		c.links[name] = true
	case tar.TypeLink:
		target, err := c.inside(e.target)
		if err != nil {
			return err
		}
		if !c.files[target] {
			return refuse("has a hard link %q to %q, which is no file before it", e.name, e.target)
		}
		h.Linkname = target
		c.files[name] = true
		delete(c.links, name)
	default:
		if c.sum.Size += e.size; e.size < 0 || c.sum.Size > c.limits.Unpacked {
			return c.tooLarge()
		}
		h.Size = e.size
		c.files[name] = true
		delete(c.links, name) // the file takes the place of the link
	}
	if err := c.out.WriteHeader(h); err != nil {
		return fmt.Errorf("unpacking %q: %w", e.name, err)
	}
	if h.Size == 0 {
		return nil
	}
	return c.copy(e, content)
}

// copy writes the content of a file, as long as the archive is no bomb.
func (c *converter) copy(e entry, content io.Reader) error {
	before := c.sum.Size - e.size
	buf := make([]byte, 64<<10)
	for done := int64(0); done < e.size; {
		n, err := content.Read(buf[:min(int64(len(buf)), e.size-done)])
		if n > 0 {
			done += int64(n)
			if err := c.grown(before + done); err != nil {
				return err
			}
			if _, err := c.out.Write(buf[:n]); err != nil {
				return fmt.Errorf("unpacking %q: %w", e.name, err)
			}
		}
		if err != nil && done < e.size {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return c.broken(err)
		}
	}
	return nil
}

// grown refuses a bomb: an archive that has grown too much.
func (c *converter) grown(size int64) error {
	if size > c.limits.Free && size/c.limits.Ratio > c.in.n {
		return refuse("grows to more than %d times its size when it is unpacked", c.limits.Ratio)
	}
	return nil
}

// stream is a tar that comes out of a decompressor, whatever is in it.
type stream struct {
	c *converter
	r io.Reader
	n int64
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if bomb := s.c.grown(s.n); bomb != nil {
		return 0, bomb
	}
	return n, err
}

func (c *converter) tooMany() error { return refuse("has more than %d entries", c.limits.Entries) }

func (c *converter) tooLarge() error {
	return refuse("holds more than %d bytes of files", c.limits.Unpacked)
}

// inside is the name of an entry below the directory. Names that lead out of
// it, or through a link of the archive, are refused.
func (c *converter) inside(name string) (string, error) {
	switch {
	case name == "" || len(name) > maxName || strings.ContainsRune(name, 0):
		return "", refuse("has an entry of the name %.100q", name)
	case strings.HasPrefix(name, "/"):
		return "", refuse("has %q, which is no path below its directory", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", refuse("has %q, which leads out of its directory", name)
		}
	}
	clean := path.Clean(name)
	for dir := path.Dir(clean); dir != "."; dir = path.Dir(dir) {
		if c.links[dir] {
			return "", refuse("has %q, which leads through the link %q", name, dir)
		}
	}
	return clean, nil
}
