package rspec

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"hash/adler32"
	"io"
	"iter"
	"slices"
	"sync"

	"croft/inventory"
)

// Ad is the advertisement of a testbed at one time. It refers to what its
// Catalogue has written, so it is small, however large the document is. It does
// not change; many may read it at once.
type Ad struct {
	catalogue *Catalogue
	root      string       // the root's start tag
	shown     []appearance // of each item
	blocks    []*block     // compressed, made when they are first asked for
	size      int
}

// appearance is how an item stands in an advertisement.
type appearance byte

const (
	left appearance = iota // out
	same                   // as it always is
	free
	taken
)

// blockSize is about how much text is compressed as one: large, to compress
// well, but not so large that the change of one host is much work.
const blockSize = 96 << 10

// cut divides the items into blocks.
func (c *Catalogue) cut() {
	c.cuts = []int{0}
	size := 0
	for i := range c.items {
		if size += len(c.items[i].start) + len(c.items[i].rest); size >= blockSize {
			c.cuts = append(c.cuts, i+1)
			size = 0
		}
	}
	if last := len(c.items); c.cuts[len(c.cuts)-1] != last {
		c.cuts = append(c.cuts, last)
	}
}

// Ad makes the advertisement of now. What has not changed since an earlier one,
// which may be nil, is shared with it.
func (c *Catalogue) Ad(earlier *Ad, available func(*inventory.Host) bool, o AdvertisementOptions) *Ad {
	a := &Ad{catalogue: c, root: rootTagOfAd, shown: make([]appearance, len(c.items)), blocks: make([]*block, len(c.cuts)-1)}
	if !o.Now.IsZero() {
		a.root += ` generated="` + dateTime(o.Now) + `"`
	}
	a.root += ">\n"
	a.size = len(a.root) + len(c.head) + len(c.tail)
	for i := range c.items {
		a.shown[i] = c.appearance(i, a.shown, available, o.AvailableOnly)
		a.size += c.length(i, a.shown[i])
	}
	for i := range a.blocks {
		from, to := c.cuts[i], c.cuts[i+1]
		if earlier != nil && earlier.catalogue == c && slices.Equal(earlier.shown[from:to], a.shown[from:to]) {
			a.blocks[i] = earlier.blocks[i]
		} else {
			a.blocks[i] = &block{}
		}
	}
	return a
}

// appearance decides how an item stands. Those that a link joins come before
// it.
func (c *Catalogue) appearance(i int, shown []appearance, available func(*inventory.Host) bool, availableOnly bool) appearance {
	item := &c.items[i]
	switch {
	case item.host == nil:
		for _, end := range item.ends {
			if end != none && shown[end] == left {
				return left
			}
		}
		return same
	case available == nil || available(item.host):
		return free
	case availableOnly:
		return left
	}
	return taken
}

// texts are the availability of hosts as it is written.
var texts = [...]string{
	left: "", same: "", free: "    <available now=\"true\"/>\n", taken: "    <available now=\"false\"/>\n",
}

func (c *Catalogue) length(i int, as appearance) int {
	if as == left {
		return 0
	}
	return len(c.items[i].start) + len(texts[as]) + len(c.items[i].rest)
}

// items yields the text of some items, in pieces.
func (a *Ad) items(from, to int, yield func(string) bool) bool {
	for i := from; i < to; i++ {
		item := &a.catalogue.items[i]
		switch as := a.shown[i]; as {
		case left:
		case same:
			if !yield(item.start) {
				return false
			}
		default:
			if !yield(item.start) || !yield(texts[as]) || !yield(item.rest) {
				return false
			}
		}
	}
	return true
}

// Size is the length of the document in bytes.
func (a *Ad) Size() int { return a.size }

// Pieces yields the document. No piece ends within a character.
func (a *Ad) Pieces() iter.Seq[string] {
	return func(yield func(string) bool) {
		_ = yield(a.root) && yield(a.catalogue.head) && a.items(0, len(a.shown), yield) && yield(a.catalogue.tail)
	}
}

// Bytes returns the document as a whole.
func (a *Ad) Bytes() []byte {
	out := make([]byte, 0, a.size)
	for piece := range a.Pieces() {
		out = append(out, piece...)
	}
	return out
}

// Compressed returns the document, in pieces, as geni_compressed wants it (AM
// API v3, ListResources): the base64 of a zlib stream (RFC 1950), without line
// breaks. The stream is made of parts that are kept, each of which stands for
// itself, so that only those are compressed in which something has changed.
func (a *Ad) Compressed() []string {
	p := a.catalogue.packer()
	defer a.catalogue.packers.Put(p)
	start, end := a.root+a.catalogue.head, a.catalogue.tail
	pieces := make([]string, 0, len(a.blocks)+3)
	pieces = append(pieces, p.pack(zlibHeader, func(yield func(string) bool) { yield(start) }))
	sum := adler32.Checksum([]byte(start))
	for i, b := range a.blocks {
		b.make(p, func(yield func(string) bool) { a.items(a.catalogue.cuts[i], a.catalogue.cuts[i+1], yield) })
		pieces = append(pieces, b.packed)
		sum = joinSums(sum, b.sum, b.size)
	}
	sum = joinSums(sum, adler32.Checksum([]byte(end)), len(end))
	return append(pieces,
		p.pack("", func(yield func(string) bool) { yield(end) }),
		base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32([]byte(lastBlock), sum)))
}

const (
	// zlibHeader says: deflate, a window of 32 KiB, the default level.
	zlibHeader = "\x78\x9c"
	// emptyBlock is a stored block of no bytes (RFC 1951, 3.2.4), not the last.
	emptyBlock = "\x00\x00\x00\xff\xff"
	// lastBlock is the last one of a stream, with fixed codes and nothing in it.
	lastBlock = "\x03\x00"
)

// block is a part of the document, compressed when it is first asked for.
type block struct {
	once   sync.Once
	packed string // base64
	sum    uint32 // Adler-32 of the text
	size   int    // of the text
}

func (b *block) make(p *packer, text iter.Seq[string]) {
	b.once.Do(func() {
		sum := adler32.New()
		for piece := range text {
			io.WriteString(sum, piece) // a hash takes everything
			b.size += len(piece)
		}
		b.sum, b.packed = sum.Sum32(), p.pack("", text)
	})
}

// packer compresses parts of documents.
type packer struct {
	deflate *flate.Writer
	out     bytes.Buffer
}

func (c *Catalogue) packer() *packer {
	if p, ok := c.packers.Get().(*packer); ok {
		return p
	}
	z, _ := flate.NewWriter(io.Discard, flate.DefaultCompression) // fails for unknown levels only
	return &packer{deflate: z}
}

// pack deflates a text so that others can follow and go before, and writes it
// as base64 of whole groups: what is missing is filled up with empty blocks.
func (p *packer) pack(before string, text iter.Seq[string]) string {
	p.out.Reset()
	p.out.WriteString(before)
	p.deflate.Reset(&p.out)
	for piece := range text {
		io.WriteString(p.deflate, piece) // a bytes.Buffer takes everything
	}
	p.deflate.Flush()
	for p.out.Len()%3 != 0 {
		p.out.WriteString(emptyBlock)
	}
	return base64.StdEncoding.EncodeToString(p.out.Bytes())
}

// joinSums is the Adler-32 (RFC 1950, 8.2) of two texts in a row, of their sums
// and the second one's length.
func joinSums(first, second uint32, size int) uint32 {
	const mod = 65521
	n := uint64(size % mod)
	a1, b1 := uint64(first&0xffff), uint64(first>>16)
	a2, b2 := uint64(second&0xffff), uint64(second>>16)
	a := (a1 + a2 + mod - 1) % mod
	b := (b1 + b2 + n*a1 + mod - n) % mod
	return uint32(b<<16 | a)
}
