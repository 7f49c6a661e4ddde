package inventory

import (
	"slices"
	"strings"
)

// Nearest returns those of names that a person may have meant by word, the
// likeliest first, three at most. It returns none if no name is near.
func Nearest(word string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	const longest = 200 // no name that a person mistypes is longer
	if word == "" || len(word) > longest {
		return nil
	}
	folded := strings.ToLower(word)
	var near []candidate
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] || len(name) > longest {
			continue
		}
		seen[name] = true
		other := strings.ToLower(name)
		limit := max(1, min(len(folded), len(other))/3)
		switch d := distance(folded, other); {
		case d <= limit:
			near = append(near, candidate{name, d})
		case len(folded) > 2 && len(other) > 2 && (strings.Contains(other, folded) || strings.Contains(folded, other)):
			near = append(near, candidate{name, limit + 1})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return strings.Compare(a.name, b.name)
	})
	var found []string
	for _, c := range near[:min(3, len(near))] {
		found = append(found, c.name)
	}
	return found
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, last, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(t)]
}
