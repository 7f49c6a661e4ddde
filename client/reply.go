package client

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"croft/urn"
)

// maxRSpec bounds what a compressed RSpec expands to.
const maxRSpec = 256 << 20

// reader takes values of the AM API out of a decoded reply and notes the first
// thing that is not as it should be.
type reader struct {
	method string
	err    error
	output string // that came with a value
}

func (r *reader) fail(where, format string, args ...any) {
	if r.err == nil {
		r.err = &ReplyError{Method: r.method, Where: where, What: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) object(v any, where string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		r.fail(where, "want a struct, got %s", kind(v))
	}
	return m
}

func (r *reader) list(v any, where string) []any {
	l, ok := v.([]any)
	if !ok {
		r.fail(where, "want an array, got %s", kind(v))
	}
	return l
}

// text reads a string; numbers and booleans of lax aggregates are written out.
func (r *reader) text(m map[string]any, name, where string) string {
	switch v := m[name].(type) {
	case nil:
		return ""
	case string:
		return v
	case int, int32, int64, float64, bool:
		return fmt.Sprint(v)
	default:
		r.fail(where+"."+name, "want a string, got %s", kind(v))
		return ""
	}
}

// number reads an int, also out of the string that some aggregates send.
func (r *reader) number(m map[string]any, name, where string) int {
	switch v := m[name].(type) {
	case int:
		return v
	case int32:
		return int(v)
	case int64:
		return int(v)
	case bool:
		if v {
			return 1
		}
		return 0
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return n
		}
	case nil:
		r.fail(where+"."+name, "missing")
		return 0
	}
	r.fail(where+"."+name, "want an int, got %s", kind(m[name]))
	return 0
}

func (r *reader) urn(m map[string]any, name, where string) urn.URN {
	text := r.text(m, name, where)
	u, err := urn.Parse(text)
	if err != nil {
		r.fail(where+"."+name, "%v", err)
	}
	return u
}

func (r *reader) time(m map[string]any, name, where string) time.Time {
	text := r.text(m, name, where)
	if text == "" {
		return time.Time{}
	}
	t, err := ParseTime(text)
	if err != nil {
		r.fail(where+"."+name, "%v", err)
	}
	return t
}

// rspec reads an RSpec, also one that is compressed and in base64.
func (r *reader) rspec(v any, where string) string {
	text, ok := v.(string)
	if !ok {
		r.fail(where, "want a string, got %s", kind(v))
		return ""
	}
	if strings.HasPrefix(strings.TrimLeft(text, "\ufeff \t\r\n"), "<") || text == "" {
		return text
	}
	packed, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return text // a document that is not XML
	}
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return text
	}
	out, err := io.ReadAll(io.LimitReader(z, maxRSpec+1))
	switch {
	case err != nil:
		r.fail(where, "compressed RSpec: %v", err)
	case len(out) > maxRSpec:
		r.fail(where, "compressed RSpec expands to more than %d bytes", maxRSpec)
	default:
		return string(out)
	}
	return ""
}

func (r *reader) slivers(v any, where string) []Sliver {
	var out []Sliver
	for i, item := range r.list(v, where) {
		at := fmt.Sprintf("%s[%d]", where, i)
		m := r.object(item, at)
		if r.err != nil {
			return nil
		}
		out = append(out, Sliver{
			URN:         r.urn(m, "geni_sliver_urn", at),
			Allocation:  r.text(m, "geni_allocation_status", at),
			Operational: r.text(m, "geni_operational_status", at),
			Expires:     r.time(m, "geni_expires", at),
			Resource:    r.text(m, "geni_resource_status", at),
			Error:       r.text(m, "geni_error", at),
			ClientID:    r.text(m, "geni_client_id", at),
			Startup:     r.steps(m["croft_startup"], at+".croft_startup"),
			Console:     r.text(m, "croft_console", at),
			HostKey:     r.text(m, "croft_host_key", at),
		})
	}
	return out
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a string"
	case map[string]any:
		return "a struct"
	case []any:
		return "an array"
	case bool:
		return "a boolean"
	default:
		return fmt.Sprintf("%T", v)
	}
}

// ParseTime reads a date of the AM API: RFC 3339, and what aggregates make of
// it: a space for the T, no zone (then UTC).
func ParseTime(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05",
		"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04Z07:00",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a date (such as 2026-01-02T15:04:05Z)", s)
}
