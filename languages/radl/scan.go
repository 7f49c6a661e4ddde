package radl

import (
	"bytes"
	"fmt"
	"strings"
)

// token is what the scanner has read.
type token byte

const (
	tEnd token = iota
	tWord
	tNumber
	tString
	tRandom
	tOpen      // (
	tClose     // )
	tOpenList  // [
	tCloseList // ]
	tComma
	tOp
	tBegin // @begin
	tBad
)

// keywords cannot be names.
var keywords = map[string]bool{
	"network": true, "ansible": true, "system": true, "soft": true, "and": true, "contains": true, "deploy": true,
	"configure": true, "contextualize": true, "step": true, "with": true, "option": true, "description": true,
}

// scanner reads tokens off a text. It never goes back.
type scanner struct {
	text []byte
	at   int // where the next token is looked for

	token      token
	start, end int
	op         Op
	bad        string // of tBad: what is wrong
	hint       string
}

// word is the text of the token as it was read.
func (s *scanner) word() []byte { return s.text[s.start:s.end] }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// wordBytes are those of names: letters, digits, "_.-", and, as the reference
// parser takes letters of any script, all of other scripts.
var wordBytes, wordStarts = func() (in, first [256]bool) {
	for c := range 256 {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.'
		first[c] = letter
		in[c] = letter || c >= '0' && c <= '9' || c == '-' || c >= 0x80
	}
	return
}()

func (s *scanner) next() {
	t, i := s.text, s.at
	for i < len(t) {
		switch c := t[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			i++
			continue
		case c == '#':
			n := bytes.IndexByte(t[i:], '\n')
			if n < 0 {
				i = len(t)
			} else {
				i += n + 1
			}
			continue
		}
		break
	}
	s.start = i
	if i >= len(t) {
		s.token, s.end, s.at = tEnd, i, i
		return
	}
	c := t[i]
	one := func(k token) { s.token, s.end, s.at = k, i+1, i+1 }
	switch {
	case wordStarts[c]:
		for i < len(t) && wordBytes[t[i]] {
			i++
		}
		s.token, s.end, s.at = tWord, i, i
	case isDigit(c):
		for i < len(t) && isDigit(t[i]) {
			i++
		}
		if i < len(t) && t[i] == '.' {
			for i++; i < len(t) && isDigit(t[i]); i++ {
			}
		}
		s.token, s.end, s.at = tNumber, i, i
	case c == '\'' || c == '"':
		s.quoted(c)
	case c == '(':
		one(tOpen)
	case c == ')':
		one(tClose)
	case c == '[':
		one(tOpenList)
	case c == ']':
		one(tCloseList)
	case c == ',':
		one(tComma)
	case c == '=' || c == '<' || c == '>':
		s.operator()
	case c == '@' && bytes.HasPrefix(t[i:], []byte("@begin")):
		s.token, s.end, s.at = tBegin, i+6, i+6
	case c == '@' && bytes.HasPrefix(t[i:], inputMark):
		_, n := inputName(t[i:])
		s.wrong(max(n, 1), "a parameter without a value", "")
	case c == '-' && i+1 < len(t) && isDigit(t[i+1]):
		s.wrong(1, "a minus sign", "numbers are not negative here")
	default:
		n := 1
		for i+n < len(t) && t[i+n]&0xC0 == 0x80 {
			n++
		}
		s.wrong(n, fmt.Sprintf("%q, which means nothing here", t[i:i+n]), "")
	}
}

func (s *scanner) wrong(length int, what, hint string) {
	s.token, s.end, s.at = tBad, s.start+length, s.start+length
	s.bad, s.hint = what, hint
}

func (s *scanner) operator() {
	i, ops := s.start, s.text[s.start:]
	set := func(op Op, n int) { s.token, s.op, s.end, s.at = tOp, op, i+n, i+n }
	second := byte(0)
	if len(ops) > 1 {
		second = ops[1]
	}
	switch {
	case ops[0] == '<' && second == '=':
		set(LessEqual, 2)
	case ops[0] == '>' && second == '=', ops[0] == '=' && second == '>':
		set(GreaterEqual, 2)
	case ops[0] == '<':
		set(Less, 1)
	case ops[0] == '>':
		set(Greater, 1)
	case second == '<':
		s.wrong(2, `"=<"`, `want "<="`)
	case second == '=':
		s.wrong(2, `"=="`, `want "="`)
	default:
		set(Equal, 1)
	}
}

// quoted reads a text in quotation marks of either kind.
func (s *scanner) quoted(mark byte) {
	t := s.text
	for i := s.start + 1; i < len(t); i++ {
		switch t[i] {
		case '\\':
			i++
		case mark:
			s.token, s.end, s.at = tString, i+1, i+1
			if mark == '\'' && isRandom(t[s.start+1:i]) {
				s.token = tRandom
			}
			return
		}
	}
	s.token, s.end, s.at = tBad, len(t), len(t)
	s.bad, s.hint = "a text that does not end", fmt.Sprintf("its closing %c is missing", mark)
}

func isRandom(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, []byte("random("))
	if !ok || len(rest) < 2 || rest[len(rest)-1] != ')' {
		return false
	}
	for _, c := range rest[:len(rest)-1] {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

// unquote is the text of a tString. The only escape is that of the quotation
// mark; other backslashes stand for themselves.
func (s *scanner) unquote() string {
	mark := s.text[s.start]
	text := string(s.text[s.start+1 : s.end-1])
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	return strings.ReplaceAll(text, `\`+string(mark), string(mark))
}

// recipe reads what stands between an @begin, which has just been read, and
// an @end at the start of a line: the rest of the line of @begin, and all
// lines after it. It reports whether there was an @end.
func (s *scanner) recipe() (string, bool) {
	end := []byte("@end")
	from := s.at
	for i := from; i < len(s.text); {
		n := bytes.IndexByte(s.text[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
		if bytes.HasPrefix(s.text[i:], end) {
			s.at = i + len(end)
			return string(s.text[from:i]), true
		}
	}
	s.at = len(s.text)
	return "", false
}
