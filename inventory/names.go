package inventory

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// What names may look like. They become parts of URNs and of XML attributes;
// nodes and switches stand before a colon in "pc1:eth0", so theirs have none.
const (
	plainPattern = `^[A-Za-z0-9_][A-Za-z0-9._-]*$`
	portPattern  = `^[A-Za-z0-9_][A-Za-z0-9._/:+@-]*$`
	wordPattern  = `^[^\s<>"&]+$`
	labelPattern = `^[^\s<>"][^<>"\n]*$`

	// rangesPattern adds ranges to portPattern: "pc[001-160]", "n[1,3,5-9]".
	// Whether the result is a plain name is checked after expansion.
	rangesPattern = `^([A-Za-z0-9._/:+@-]|\[[0-9]+(-[0-9]+)?(, ?[0-9]+(-[0-9]+)?)*\])+$`
)

var (
	plainName   = regexp.MustCompile(plainPattern)
	portName    = regexp.MustCompile(portPattern)
	wordName    = regexp.MustCompile(wordPattern)
	labelText   = regexp.MustCompile(labelPattern)
	rangedNames = regexp.MustCompile(rangesPattern)
)

// maxNames bounds what one range stands for.
const maxNames = 100_000

// expand returns the names that a pattern stands for, in order: "pc[08-10]" is
// pc08, pc09, pc10. Numbers are as wide as the first, if it starts with 0.
func expand(pattern string) ([]string, error) {
	open := strings.IndexByte(pattern, '[')
	if open < 0 {
		return []string{pattern}, nil
	}
	length := strings.IndexByte(pattern[open:], ']')
	if length < 0 {
		return nil, fmt.Errorf("%q has a [ without a ]", pattern)
	}
	head, inner, rest := pattern[:open], pattern[open+1:open+length], pattern[open+length+1:]
	tails, err := expand(rest)
	if err != nil {
		return nil, err
	}
	var numbers []string
	for part := range strings.SplitSeq(inner, ",") {
		part = strings.TrimSpace(part)
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		if len(from) > 9 || len(to) > 9 {
			return nil, fmt.Errorf("%q: %s is too long a number", pattern, part)
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || strings.ContainsAny(part, "+ ") {
			return nil, fmt.Errorf("%q: %q is no range of numbers", pattern, part)
		}
		if last < first {
			return nil, fmt.Errorf("%q counts down from %s to %s", pattern, from, to)
		}
		if len(from) > 1 && from[0] == '0' && len(from) != len(to) {
			return nil, fmt.Errorf("%q: %s and %s differ in width", pattern, from, to)
		}
		if last-first+1+len(numbers) > maxNames {
			return nil, fmt.Errorf("%q stands for more than %d names", pattern, maxNames)
		}
		width := 0
		if from[0] == '0' {
			width = len(from)
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", width, n))
		}
	}
	if len(numbers)*len(tails) > maxNames {
		return nil, fmt.Errorf("%q stands for more than %d names", pattern, maxNames)
	}
	names := make([]string, 0, len(numbers)*len(tails))
	for _, n := range numbers {
		for _, tail := range tails {
			names = append(names, head+n+tail)
		}
	}
	return names, nil
}
