package openssl

// #include "glue.h"
import "C"

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// maxCRL is the largest revocation list that is read, in bytes.
const maxCRL = 32 << 20

// ParsePEM reads every CERTIFICATE block of a PEM file, in order. Blocks of
// other kinds and text between blocks are passed over. An error names the
// block and its line; a file without a certificate is an error.
func ParsePEM(text []byte) ([]*Certificate, error) {
	var list []*Certificate
	err := eachBlock(text, "CERTIFICATE", func(der []byte) error {
		c, err := ParseCertificate(der)
		list = append(list, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("read PEM: no CERTIFICATE block in it")
	}
	return list, nil
}

// CRL is a certificate revocation list.
type CRL struct {
	Issuer    string // RFC 2253
	RawIssuer []byte // DER
	// ThisUpdate and NextUpdate are when the list was issued and when the
	// next one is due; NextUpdate is zero when the list does not say.
	ThisUpdate, NextUpdate time.Time

	native *nativeCRL
}

type nativeCRL struct{ x *C.X509_CRL }

// ParseCRLs reads every "X509 CRL" block of a PEM file, in order, as ParsePEM
// reads certificates. A file without one is an error.
func ParseCRLs(text []byte) ([]*CRL, error) {
	var list []*CRL
	err := eachBlock(text, "X509 CRL", func(der []byte) error {
		c, err := parseCRL(der)
		list = append(list, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("read PEM: no X509 CRL block in it")
	}
	return list, nil
}

func parseCRL(der []byte) (*CRL, error) {
	if len(der) == 0 || len(der) > maxCRL {
		return nil, fmt.Errorf("read revocation list: %d bytes, want 1 to %d", len(der), maxCRL)
	}
	var e C.glue_error
	x := C.glue_parse_crl((*C.uchar)(&der[0]), C.size_t(len(der)), &e)
	if x == nil {
		return nil, fmt.Errorf("read revocation list: %w", newError(&e))
	}
	c := &CRL{native: &nativeCRL{x}}
	defer runtime.KeepAlive(c)
	runtime.AddCleanup(c.native, func(x *C.X509_CRL) { C.X509_CRL_free(x) }, x)
	var out *C.uchar
	issuer := C.X509_CRL_get_issuer(x)
	c.Issuer = string(take(&out, C.glue_name_text(issuer, &out)))
	c.RawIssuer = take(&out, C.glue_name_der(issuer, &out))
	var ok bool
	if c.ThisUpdate, ok = goTime(C.X509_CRL_get0_lastUpdate(x)); !ok {
		return nil, fmt.Errorf("read revocation list of %s: its date is no time", c.Issuer)
	}
	if next := C.X509_CRL_get0_nextUpdate(x); next != nil {
		if c.NextUpdate, ok = goTime(next); !ok {
			return nil, fmt.Errorf("read revocation list of %s: its next date is no time", c.Issuer)
		}
	}
	return c, nil
}

var beginMark = []byte("-----BEGIN ")

// eachBlock calls f with every block of the kind. It cuts the text at the
// BEGIN lines first, because pem.Decode passes silently over a block that it
// cannot read.
func eachBlock(text []byte, kind string, f func(der []byte) error) error {
	line, count := 1, 0
	for {
		start := bytes.Index(text, beginMark)
		if start < 0 {
			return nil
		}
		line += bytes.Count(text[:start], []byte("\n"))
		text = text[start:]
		piece := text
		if next := bytes.Index(text[len(beginMark):], beginMark); next >= 0 {
			piece = text[:len(beginMark)+next]
		}
		text = text[len(piece):]
		header, _, _ := bytes.Cut(piece[len(beginMark):], []byte("-----"))
		if string(header) == kind {
			count++
			block, _ := pem.Decode(piece)
			if block == nil {
				return fmt.Errorf("read PEM: %s block %d at line %d: damaged, or no end line", kind, count, line)
			}
			if err := f(block.Bytes); err != nil {
				return fmt.Errorf("read PEM: %s block %d at line %d: %w", kind, count, line, err)
			}
		}
		line += bytes.Count(piece, []byte("\n"))
	}
}
