package wsync

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader reads the JSON of a state. encoding/json would take six times as long for
// a large workspace, accept a member twice and in any letter case, and turn bytes
// that are not UTF-8 into others, so that two names could become one.
type jsonReader struct {
	data []byte
	pos  int
}

const maxJSONDepth = 32

func (r *jsonReader) errorf(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", r.pos, fmt.Sprintf(format, args...))
}

// object calls member for each one, with the reader at its value.
func (r *jsonReader) object(member func(name string) error) error {
	if err := r.expect('{'); err != nil {
		return err
	}
	if r.peek() == '}' {
		r.pos++
		return nil
	}
	seen := make([]string, 0, 16)
	for {
		r.peek()
		name, err := r.str()
		if err != nil {
			return err
		}
		for _, s := range seen {
			if s == name {
				return r.errorf("member %q appears twice", name)
			}
		}
		if len(seen) == 256 {
			return r.errorf("more than 256 members")
		}
		seen = append(seen, name)
		if err := r.expect(':'); err != nil {
			return err
		}
		r.peek()
		if err := member(name); err != nil {
			return err
		}
		if done, err := r.next('}'); done || err != nil {
			return err
		}
	}
}

// array calls item for each one, with the reader at it.
func (r *jsonReader) array(item func() error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	if r.peek() == ']' {
		r.pos++
		return nil
	}
	for {
		r.peek()
		if err := item(); err != nil {
			return err
		}
		if done, err := r.next(']'); done || err != nil {
			return err
		}
	}
}

// str reads a string.
func (r *jsonReader) str() (string, error) {
	if err := r.expect('"'); err != nil {
		return "", err
	}
	start, plain := r.pos, true
	for ; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; {
		case c == '"':
			raw := r.data[start:r.pos]
			r.pos++
			if !utf8.Valid(raw) {
				return "", r.errorf("string is not UTF-8")
			}
			if plain {
				return string(raw), nil
			}
			return r.unescape(raw)
		case c == '\\':
			plain = false
			r.pos++
		case c < 0x20:
			return "", r.errorf("control character in a string")
		}
	}
	return "", r.errorf("string does not end")
}

func (r *jsonReader) unescape(raw []byte) (string, error) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if c, ok := shortEscapes[raw[i]]; ok {
			out = append(out, c)
			continue
		}
		c, n := hexEscape(raw[i-1:])
		if n == 0 {
			return "", r.errorf("bad escape in a string")
		}
		out = utf8.AppendRune(out, c)
		i += n - 2
	}
	return string(out), nil
}

var shortEscapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hexEscape reads \uXXXX, or two of them that make one character. n is 0 if it is neither;
// half a surrogate pair is no character.
func hexEscape(s []byte) (c rune, n int) {
	unit := func(s []byte) (rune, bool) {
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(string(s[2:6]), 16, 16)
		return rune(v), err == nil
	}
	hi, ok := unit(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(hi) {
		return hi, 6
	}
	lo, ok := unit(s[6:])
	if c = utf16.DecodeRune(hi, lo); !ok || c == utf8.RuneError {
		return 0, 0
	}
	return c, 12
}

// integer reads a whole number.
func (r *jsonReader) integer() (int64, error) {
	start := r.pos
	neg := r.pos < len(r.data) && r.data[r.pos] == '-'
	if neg {
		r.pos++
	}
	digits, v := r.pos, int64(0)
	for ; r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9'; r.pos++ {
		d := int64(r.data[r.pos] - '0')
		if v > (math.MaxInt64-d)/10 {
			return 0, r.errorf("number is too large")
		}
		v = v*10 + d
	}
	if n := r.pos - digits; n == 0 || n > 1 && r.data[digits] == '0' || neg && v == 0 {
		r.pos = start
		return 0, r.errorf("not a whole number")
	}
	if r.pos < len(r.data) && (r.data[r.pos] == '.' || r.data[r.pos]|0x20 == 'e') {
		return 0, r.errorf("not a whole number")
	}
	if neg {
		v = -v
	}
	return v, nil
}

// peek skips white space and returns the byte there, 0 at the end.
func (r *jsonReader) peek() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) expect(c byte) error {
	if got := r.peek(); got != c || r.pos >= len(r.data) {
		return r.errorf("expected %q", c)
	}
	r.pos++
	return nil
}

// next reads a comma, or the end of an object or array.
func (r *jsonReader) next(end byte) (done bool, err error) {
	switch r.peek() {
	case ',':
		r.pos++
		return false, nil
	case end:
		r.pos++
		return true, nil
	}
	return false, r.errorf("expected ',' or %q", end)
}

// end makes sure that nothing follows.
func (r *jsonReader) end() error {
	if r.peek() != 0 || r.pos < len(r.data) {
		return r.errorf("data after the end")
	}
	return nil
}
