package document

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scalar reads a number, true, false or null.
func (s *scanner) scalar() (kind NodeKind, text string, err error) {
	if c := s.peek(); c == '-' || c >= '0' && c <= '9' {
		start := s.pos
		err := s.number()
		return Number, string(s.data[start:s.pos]), err
	}
	for _, w := range words {
		if bytes.HasPrefix(s.data[s.pos:], []byte(w.text)) {
			s.pos += len(w.text)
			return w.kind, w.text, nil
		}
	}
	return 0, "", s.unexpected("a value: a string in double quotes, a number, true, false, null, '[' or '{'")
}

var words = []struct {
	text string
	kind NodeKind
}{{"true", Bool}, {"false", Bool}, {"null", Null}}

// number passes over -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (s *scanner) number() error {
	s.accept("-")
	if !s.accept("0") && !s.digits() {
		return s.unexpected("a digit")
	}
	if s.accept(".") && !s.digits() {
		return s.unexpected("a digit")
	}
	if s.accept("eE") {
		s.accept("+-")
		if !s.digits() {
			return s.unexpected("a digit")
		}
	}
	return nil
}

// accept moves over one of the given characters.
func (s *scanner) accept(chars string) bool {
	for i := 0; i < len(chars); i++ {
		if s.peek() == chars[i] {
			s.pos++
			return true
		}
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	return s.pos > start
}

// parseInt returns the number between start and pos.
func (s *scanner) parseInt(start int) (int64, error) {
	digits, v := s.data[start:s.pos], int64(0)
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	for _, c := range digits {
		d := int64(c) - '0'
		if d < 0 || d > 9 || v > (math.MaxInt64-d)/10 {
			return 0, s.failAt(start, "", notWhole(string(s.data[start:s.pos])))
		}
		v = v*10 + d
	}
	if negative && v == 0 { // nobody writes a zero like this
		return 0, s.failAt(start, "", notWhole("-0"))
	}
	if negative {
		v = -v
	}
	return v, nil
}

func notWhole(text string) string { return "want a whole number, not " + Quote(text) }

// str reads a string. Most have no escapes and are copied as they stand.
func (s *scanner) str(into *string) error {
	s.pos++
	start := s.pos
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			*into = string(s.data[start:s.pos])
			s.pos++
			return nil
		case c == '\\':
			return s.escaped(start, into)
		case c < ' ':
			return s.control(c)
		}
		s.pos++
	}
	return s.fail("the text ends within a string")
}

// escaped reads the rest of a string from its first escape on.
func (s *scanner) escaped(start int, into *string) error {
	out := append(make([]byte, 0, 2*(s.pos-start)+16), s.data[start:s.pos]...)
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			*into = string(out)
			s.pos++
			return nil
		case c == '\\':
			var err error
			if out, err = s.escape(out); err != nil {
				return err
			}
		case c < ' ':
			return s.control(c)
		default:
			out = append(out, c)
			s.pos++
		}
	}
	return s.fail("the text ends within a string")
}

func (s *scanner) control(c byte) error {
	return s.fail(fmt.Sprintf("the control character 0x%02x must be escaped in a string", c))
}

func (s *scanner) escape(out []byte) ([]byte, error) {
	const names, means = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	rest := s.data[s.pos:]
	if len(rest) < 2 {
		return nil, s.fail("the text ends within a string")
	}
	if i := bytes.IndexByte([]byte(names), rest[1]); i >= 0 {
		s.pos += 2
		return append(out, means[i]), nil
	}
	c, ok := hex4(rest)
	size := 6
	if ok && utf16.IsSurrogate(c) {
		low, _ := hex4(rest[size:])
		c, size = utf16.DecodeRune(c, low), 2*size
		ok = c != utf8.RuneError
	}
	if !ok {
		return nil, s.fail(`not an escape that JSON knows: write \\ for a backslash, \u and four hex digits for a character`)
	}
	s.pos += size
	return utf8.AppendRune(out, c), nil
}

// hex4 reads an escape of the form \uXXXX.
func hex4(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return rune(v), err == nil
}
