package live

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cleaner makes a stream of bytes fit for a terminal: valid UTF-8 without escape
// sequences, control characters and direction marks. Newlines and tabs stay; a lone
// carriage return becomes a newline, so that no line can be overwritten. Pieces
// may be cut anywhere. The zero value is ready.
type Cleaner struct {
	state   cleanState
	partial []byte // the beginning of a character that the last piece was cut in
	cr      bool   // the last character was a carriage return
}

type cleanState byte

const (
	ground     cleanState = iota
	escaped               // after ESC
	escapeMore            // ESC and intermediate bytes
	csi                   // a control sequence
	text                  // a command string (title, clipboard, …) that ends with BEL or ESC \
	textEscape            // ESC in such a string
)

const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
)

// Clean returns what is left of p.
func (c *Cleaner) Clean(p []byte) []byte {
	if len(c.partial) > 0 {
		p = append(c.partial, p...)
		c.partial = nil
	}
	out := make([]byte, 0, len(p))
	for len(p) > 0 {
		if !utf8.FullRune(p) {
			c.partial = bytes.Clone(p)
			break
		}
		r, n := utf8.DecodeRune(p)
		p = p[n:]
		out = c.step(out, r)
	}
	return out
}

// Flush returns what is left at the end of the stream.
func (c *Cleaner) Flush() []byte {
	var out []byte
	if len(c.partial) > 0 {
		c.partial = nil
		out = c.step(out, utf8.RuneError)
	}
	if c.cr {
		c.cr = false
		out = append(out, '\n')
	}
	return out
}

func (c *Cleaner) step(out []byte, r rune) []byte {
	if c.state != ground && r == '\n' {
		c.state = ground // an unfinished sequence must not swallow the rest of a log
	}
	switch c.state {
	case escaped:
		c.state = afterEscape(r)
	case escapeMore:
		if r < 0x20 || r > 0x2f {
			c.state = ground
		}
	case csi:
		if r >= 0x40 && r <= 0x7e || r == can || r == sub || r > 0x7e {
			c.state = ground
		} else if r == esc {
			c.state = escaped
		}
	case text:
		switch r {
		case bel, can, sub, 0x9c:
			c.state = ground
		case esc:
			c.state = textEscape
		}
	case textEscape:
		if r == '\\' {
			c.state = ground
		} else {
			c.state = afterEscape(r)
		}
	default:
		return c.plain(out, r)
	}
	return out
}

func afterEscape(r rune) cleanState {
	switch {
	case r == '[':
		return csi
	case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
		return text
	case r == esc:
		return escaped
	case r >= 0x20 && r <= 0x2f:
		return escapeMore
	}
	return ground
}

func (c *Cleaner) plain(out []byte, r rune) []byte {
	if c.cr {
		c.cr = false
		out = append(out, '\n')
		if r == '\n' {
			return out
		}
	}
	switch r {
	case '\n', '\t':
		return append(out, byte(r))
	case '\r':
		c.cr = true
		return out
	case esc:
		c.state = escaped
		return out
	case 0x9b:
		c.state = csi
		return out
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f:
		c.state = text
		return out
	}
	if !printable(r) {
		return out
	}
	return utf8.AppendRune(out, r)
}

// printable refuses control characters, and the marks that reorder what is read.
func printable(r rune) bool {
	return !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) && r != '\u2028' && r != '\u2029'
}

// Line makes s one line of clean text, for names and messages.
func Line(s string) string {
	var c Cleaner
	out := append(c.Clean([]byte(s)), c.Flush()...)
	return strings.Join(strings.Fields(string(out)), " ")
}

// Text makes s clean text of any number of lines.
func Text(s string) string {
	var c Cleaner
	return string(append(c.Clean([]byte(s)), c.Flush()...))
}
