package rspec

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"

	"croft/slivers"
)

// DocumentNamespace is that of the extension by which manifests give back the
// documents of other languages that their slivers were asked for in:
//
//	<document xmlns="urn:x-croft:document:1" id="1" media_type="application/radl">…</document>
//
// The content is the document's text. One that XML cannot hold has
// encoding="base64".
const DocumentNamespace = "urn:x-croft:document:1"

// originalFragment is the extension element for a document.
func originalFragment(_ *etree.Element, d *slivers.Document) fragment {
	f := fragment{name: "document"}
	f.attr("xmlns", DocumentNamespace)
	f.attr("id", strconv.FormatInt(int64(d.ID), 10))
	f.attr("media_type", d.MediaType)
	f.text = string(d.Bytes)
	if !writable(f.text) {
		f.attr("encoding", "base64")
		f.text = base64.StdEncoding.EncodeToString(d.Bytes)
	}
	return f
}

// writable reports whether text comes back from an XML document as it was: it
// is of characters that XML has, and of no carriage returns, which readers
// take for line feeds.
func writable(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' || r == 0xFFFE || r == 0xFFFF
	})
}
