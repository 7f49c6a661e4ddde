package xmlrpc

import (
	"unicode/utf8"
)

const replacement = "\uFFFD"

// plain marks the ASCII characters that text may hold as they are.
var plain = func() (t [256]bool) {
	for b := ' '; b < 0x7f; b++ {
		t[b] = true
	}
	t['\t'], t['\n'], t[0x7f] = true, true, true
	t['<'], t['>'], t['&'] = false, false, false
	return t
}()

// escape returns how the character at the start of s is written, and how many
// bytes of s it takes up. "" stands for a character that is written as it is.
func escape(s string) (string, int) {
	switch s[0] {
	case '<':
		return "&lt;", 1
	case '>':
		return "&gt;", 1
	case '&':
		return "&amp;", 1
	case '\r':
		return "&#13;", 1
	}
	if s[0] < utf8.RuneSelf {
		return replacement, 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 || !isCharacter(r) {
		return replacement, n
	}
	return "", n
}

// escapedLen is the number of bytes that appendEscaped appends.
func escapedLen(s string) int {
	total := len(s)
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		with, n := escape(s[i:])
		if with != "" {
			total += len(with) - n
		}
		i += n
	}
	return total
}

// appendEscaped appends text as the content of an element.
func appendEscaped(dst []byte, s string) []byte {
	done := 0
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		with, n := escape(s[i:])
		if with != "" {
			dst = append(append(dst, s[done:i]...), with...)
			done = i + n
		}
		i += n
	}
	return append(dst, s[done:]...)
}
