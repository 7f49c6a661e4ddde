package inventory

import (
	"slices"
	"testing"

	"croft/capacity"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]capacity.MiB{
		"8GiB": 8192, "512 MiB": 512, "1.5 TiB": 1536 * 1024, "1024KiB": 1, "4Gi": 4096,
		"1 TB": 953674, "1 PiB": 1 << 30, "0 MiB": 0, "1.048576 MB": 1,
	} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "8", "8G", "8g", "GiB", "8 giB", "-1 GiB", "1e3 GiB", "8  GiB", "1. GiB", "99999999999999999999 PiB"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
	for _, m := range []capacity.MiB{1, 512, 1024, 1536, 1 << 20, 953674} {
		if got, ok := parseSize(formatSize(m)); !ok || got != m {
			t.Errorf("%d MiB is written as %q", m, formatSize(m))
		}
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]capacity.Kbps{
		"1Gbps": 1_000_000, "100 Mbps": 100_000, "2.5 Gbit/s": 2_500_000, "64kbps": 64, "1 Tbps": 1_000_000_000,
	} {
		if got, ok := parseRate(text); !ok || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1000", "1 GBps", "1 Gib/s", "1 gbps", "-1 Mbps"} {
		if got, ok := parseRate(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
	for _, k := range []capacity.Kbps{1, 1000, 1500, 1_000_000, 2_500_000} {
		if got, ok := parseRate(formatRate(k)); !ok || got != k {
			t.Errorf("%d kbps is written as %q", k, formatRate(k))
		}
	}
}

func TestExpand(t *testing.T) {
	for pattern, want := range map[string][]string{
		"pc":            {"pc"},
		"pc[8-11]":      {"pc8", "pc9", "pc10", "pc11"},
		"pc[08-10]":     {"pc08", "pc09", "pc10"},
		"pc[0-2]":       {"pc0", "pc1", "pc2"},
		"[1,3, 5-6]x":   {"1x", "3x", "5x", "6x"},
		"r[1-2]n[1-2]":  {"r1n1", "r1n2", "r2n1", "r2n2"},
		"a[007]":        {"a007"},
		"Gi[1-2]/0/[1]": {"Gi1/0/1", "Gi2/0/1"},
	} {
		got, err := expand(pattern)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q stands for %q (%v), want %q", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{"pc[", "pc[]", "pc[a]", "pc[1-]", "pc[2-1]", "pc[01-100]", "pc[1-99999999]", "x[1-1000][1-1000]", "pc[+1]", "pc[1-2-3]", "pc[9999999999]"} {
		if got, err := expand(pattern); err == nil {
			t.Errorf("%q stands for %d names", pattern, len(got))
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"namespace", "raw-pc", "emulab-xen", "debian12", "debian11", "UBUNTU22-64-STD"}
	for word, want := range map[string][]string{
		"namspace":  {"namespace"},
		"rawpc":     {"raw-pc"},
		"debian":    {"debian11", "debian12"},
		"debain12":  {"debian12", "debian11"},
		"ubuntu22":  {"UBUNTU22-64-STD"},
		"Namespace": {"namespace"},
		"docker":    nil,
		"":          nil,
	} {
		if got := Nearest(word, names); !slices.Equal(got, want) {
			t.Errorf("nearest to %q are %q, want %q", word, got, want)
		}
	}
}
