package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Duration is a time span, written "90s", "10m", "12h", or in days: "30d".
type Duration time.Duration

// Std returns the span as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String writes the span so that UnmarshalText reads it.
func (d Duration) String() string {
	t := time.Duration(d)
	switch {
	case t != 0 && t%day == 0:
		return strconv.FormatInt(int64(t/day), 10) + "d"
	case t != 0 && t%time.Hour == 0:
		return strconv.FormatInt(int64(t/time.Hour), 10) + "h"
	case t != 0 && t%time.Minute == 0:
		return strconv.FormatInt(int64(t/time.Minute), 10) + "m"
	}
	return t.String()
}

// UnmarshalText reads a span.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil || n > int64(1<<63-1)/int64(day) || n < -int64(1<<63-1)/int64(day) {
			return fmt.Errorf("%q is not a number of days", s)
		}
		*d = Duration(time.Duration(n) * day)
		return nil
	}
	t, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a time span (such as 90s, 10m, 12h or 30d)", s)
	}
	*d = Duration(t)
	return nil
}

// Bytes is a size, written as a number or with KiB, MiB or GiB: "10MiB".
type Bytes int64

// String writes the size so that UnmarshalText reads it.
func (b Bytes) String() string {
	for _, u := range []struct {
		name string
		size Bytes
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	s, unit := string(text), Bytes(1)
	for name, size := range map[string]Bytes{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(s, name); ok {
			s, unit = strings.TrimSpace(n), size
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > int64(1<<63-1)/int64(unit) || n < 0 {
		return fmt.Errorf("%q is not a size (such as 10485760, 512KiB or 10MiB)", text)
	}
	*b = Bytes(n) * unit
	return nil
}
