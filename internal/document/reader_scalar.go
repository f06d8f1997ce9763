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
func (r *Reader) scalar() (kind NodeKind, text string, err error) {
	if c := r.peek(); c == '-' || c >= '0' && c <= '9' {
		start := r.pos
		err := r.number()
		return Number, string(r.data[start:r.pos]), err
	}
	for _, w := range words {
		if bytes.HasPrefix(r.data[r.pos:], []byte(w.text)) {
			r.pos += len(w.text)
			return w.kind, w.text, nil
		}
	}
	return 0, "", r.unexpected("a value: a string in double quotes, a number, true, false, null, '[' or '{'")
}

var words = []struct {
	text string
	kind NodeKind
}{{"true", Bool}, {"false", Bool}, {"null", Null}}

// number passes over -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (r *Reader) number() error {
	r.accept("-")
	if !r.accept("0") && !r.digits() {
		return r.unexpected("a digit")
	}
	if r.accept(".") && !r.digits() {
		return r.unexpected("a digit")
	}
	if r.accept("eE") {
		r.accept("+-")
		if !r.digits() {
			return r.unexpected("a digit")
		}
	}
	return nil
}

// accept moves over one of the given characters.
func (r *Reader) accept(chars string) bool {
	for i := 0; i < len(chars); i++ {
		if r.peek() == chars[i] {
			r.pos++
			return true
		}
	}
	return false
}

func (r *Reader) digits() bool {
	start := r.pos
	for c := r.peek(); c >= '0' && c <= '9'; c = r.peek() {
		r.pos++
	}
	return r.pos > start
}

// parseInt returns the number between start and pos.
func (r *Reader) parseInt(start int) (int64, error) {
	digits, v := r.data[start:r.pos], int64(0)
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	for _, c := range digits {
		d := int64(c) - '0'
		if d < 0 || d > 9 || v > (math.MaxInt64-d)/10 {
			return 0, r.failAt(start, "", notWhole(string(r.data[start:r.pos])))
		}
		v = v*10 + d
	}
	if negative && v == 0 { // nobody writes a zero like this
		return 0, r.failAt(start, "", notWhole("-0"))
	}
	if negative {
		v = -v
	}
	return v, nil
}

func notWhole(text string) string { return "want a whole number, not " + Quote(text) }

// knownKey reads a key that came before, without a copy.
func (r *Reader) knownKey() (key string, known bool) {
	rest := r.data[r.pos+1:]
	end := bytes.IndexByte(rest[:min(len(rest), maxKnownKey)], '"')
	if end < 0 {
		return "", false
	}
	if key, known = r.names[string(rest[:end])]; known {
		r.pos += 1 + end + 1
	}
	return key, known
}

// maxKnownKey is how far knownKey looks for the end of a key.
const maxKnownKey = 64

// str reads a string. Most have no escapes and are copied as they stand.
func (r *Reader) str(into *string) error {
	r.pos++
	start := r.pos
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == '"':
			*into = string(r.data[start:r.pos])
			r.pos++
			return nil
		case c == '\\':
			return r.escaped(start, into)
		case c < ' ':
			return r.control(c)
		}
		r.pos++
	}
	return r.fail("the text ends within a string")
}

// escaped reads the rest of a string from its first escape on.
func (r *Reader) escaped(start int, into *string) error {
	out := append(make([]byte, 0, 2*(r.pos-start)+16), r.data[start:r.pos]...)
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == '"':
			*into = string(out)
			r.pos++
			return nil
		case c == '\\':
			var err error
			if out, err = r.escape(out); err != nil {
				return err
			}
		case c < ' ':
			return r.control(c)
		default:
			out = append(out, c)
			r.pos++
		}
	}
	return r.fail("the text ends within a string")
}

func (r *Reader) control(c byte) error {
	return r.fail(fmt.Sprintf("the control character 0x%02x must be escaped in a string", c))
}

func (r *Reader) escape(out []byte) ([]byte, error) {
	const names, means = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	rest := r.data[r.pos:]
	if len(rest) < 2 {
		return nil, r.fail("the text ends within a string")
	}
	if i := bytes.IndexByte([]byte(names), rest[1]); i >= 0 {
		r.pos += 2
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
		return nil, r.fail(`not an escape that JSON knows: write \\ for a backslash, \u and four hex digits for a character`)
	}
	r.pos += size
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
