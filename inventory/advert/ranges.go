package advert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// numbered takes a name apart at its last number.
var numbered = regexp.MustCompile(`^(.*?)([0-9]{1,9})([^0-9]*)$`)

// compress writes names as ranges: "pc[1-3,7]" for pc1, pc2, pc3 and pc7. The
// patterns are in the order of their first names.
func compress(names []string) []string {
	type family struct {
		head, tail string
		width      int // of zero-padded numbers; 0 for plain ones
	}
	members := map[family][]int{}
	var order []family
	single := map[family]string{}
	for _, name := range names {
		m := numbered.FindStringSubmatch(name)
		f := family{head: name, width: -1}
		n := 0
		if m != nil {
			f = family{head: m[1], tail: m[3]}
			if m[2][0] == '0' && len(m[2]) > 1 {
				f.width = len(m[2])
			}
			n, _ = strconv.Atoi(m[2])
		}
		// pc099 and pc100 are of one range: plain numbers as wide as the
		// padded ones join them.
		if padded := (family{f.head, f.tail, len(fmt.Sprint(n))}); f.width == 0 && members[padded] != nil {
			f = padded
		}
		if members[f] == nil {
			order = append(order, f)
			single[f] = name
		}
		members[f] = append(members[f], n)
	}
	var patterns []string
	for _, f := range order {
		numbers := members[f]
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		if len(numbers) == 1 {
			patterns = append(patterns, single[f])
			continue
		}
		var parts []string
		for i := 0; i < len(numbers); {
			j := i
			for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
				j++
			}
			part := fmt.Sprintf("%0*d", f.width, numbers[i])
			if j > i {
				part += fmt.Sprintf("-%0*d", f.width, numbers[j])
			}
			parts = append(parts, part)
			i = j + 1
		}
		patterns = append(patterns, f.head+"["+strings.Join(parts, ",")+"]"+f.tail)
	}
	return patterns
}
