package inventory

import (
	"math"
	"regexp"
	"strconv"

	"croft/capacity"
)

// Sizes and rates are a decimal number and a unit; a bare number would leave
// open which unit was meant.
const (
	sizePattern = `^([0-9]+(?:\.[0-9]+)?) ?([KMGTP]i?B|[KMGTP]i)$`
	ratePattern = `^([0-9]+(?:\.[0-9]+)?) ?([kKMGT])(bps|bit/s)$`
)

var (
	sizeSyntax = regexp.MustCompile(sizePattern)
	rateSyntax = regexp.MustCompile(ratePattern)
)

const largestAmount = 1e15 // of a unit; beyond any machine and far from overflow

// parseSize reads "8GiB", "512 MiB", "1.5 TB". Decimal units are powers of
// 1000; what is less than a MiB is dropped.
func parseSize(s string) (capacity.MiB, bool) {
	m := sizeSyntax.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	power := 1
	for _, letter := range "KMGTP" {
		if rune(m[2][0]) == letter {
			break
		}
		power++
	}
	base := 1024.0
	if len(m[2]) == 2 && m[2][1] == 'B' {
		base = 1000
	}
	mib := math.Floor(n*math.Pow(base, float64(power))/(1<<20) + 1e-6)
	if mib > largestAmount {
		return 0, false
	}
	return capacity.MiB(mib), true
}

// parseRate reads "1Gbps", "100 Mbps", "2.5 Gbit/s".
func parseRate(s string) (capacity.Kbps, bool) {
	m := rateSyntax.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	scale := map[string]float64{"k": 1, "K": 1, "M": 1e3, "G": 1e6, "T": 1e9}[m[2]]
	kbps := math.Round(n * scale)
	if kbps > largestAmount {
		return 0, false
	}
	return capacity.Kbps(kbps), true
}

// formatSize writes a size as an operator would.
func formatSize(m capacity.MiB) string {
	switch {
	case m >= 1<<20 && m%(1<<20) == 0:
		return strconv.FormatInt(int64(m>>20), 10) + " TiB"
	case m >= 1<<10 && m%(1<<10) == 0:
		return strconv.FormatInt(int64(m>>10), 10) + " GiB"
	}
	return strconv.FormatInt(int64(m), 10) + " MiB"
}

// formatRate writes a rate as an operator would.
func formatRate(k capacity.Kbps) string {
	switch {
	case k >= 1e6 && k%1e6 == 0:
		return strconv.FormatInt(int64(k/1e6), 10) + " Gbps"
	case k >= 1e3 && k%1e3 == 0:
		return strconv.FormatInt(int64(k/1e3), 10) + " Mbps"
	}
	return strconv.FormatInt(int64(k), 10) + " kbps"
}

// formatCores writes whole cores and fractions without trailing zeros.
func formatCores(c capacity.Cores) string {
	return strconv.FormatFloat(float64(c)/float64(capacity.Core), 'f', -1, 64)
}
