// Package sanitize removes from untrusted text what could act on a terminal: move
// the cursor, rename the window, fill the clipboard, or make one line look like
// another. Text, newlines and tabs stay.
//
//	a job's output ──► Filter, piece by piece ──┐
//	a message      ──► Text, any number of lines ├──► terminal
//	a name         ──► Line, one line ──────────┘
package sanitize

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Filter makes a stream of bytes fit for a terminal: valid UTF-8 without escape
// sequences, control characters and direction marks. Newlines and tabs stay. A lone
// carriage return becomes a newline, so that no line can be overwritten. The stream
// may be cut into pieces anywhere. The zero value is ready; it is not safe for
// concurrent use.
type Filter struct {
	state   state
	partial []byte // the first bytes of a character whose rest is in the next piece
	cr      bool   // the last character was a carriage return
}

// state is where a Filter stands in an escape sequence of ECMA-48.
type state byte

const (
	ground     state = iota
	escaped          // after ESC
	escapeMore       // ESC and intermediate bytes
	csi              // a control sequence
	text             // a command string (title, clipboard, …) that ends with BEL or ESC \
	textEscape       // ESC in such a string
)

const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
)

// Clean returns the clean text of the next piece, p. The end of p may come with a later call.
func (f *Filter) Clean(p []byte) []byte {
	if len(f.partial) > 0 {
		p = append(f.partial, p...)
		f.partial = nil
	}
	out := make([]byte, 0, len(p))
	for len(p) > 0 {
		if !utf8.FullRune(p) {
			f.partial = bytes.Clone(p)
			break
		}
		r, n := utf8.DecodeRune(p)
		p = p[n:]
		out = f.step(out, r)
	}
	return out
}

// Flush returns the rest at the end of the stream.
func (f *Filter) Flush() []byte {
	var out []byte
	if len(f.partial) > 0 {
		f.partial = nil
		out = f.step(out, utf8.RuneError)
	}
	if f.cr {
		f.cr = false
		out = append(out, '\n')
	}
	return out
}

func (f *Filter) step(out []byte, r rune) []byte {
	if f.state != ground && r == '\n' {
		f.state = ground // an unfinished sequence must not swallow the rest of a log
	}
	switch f.state {
	case escaped:
		f.state = afterEscape(r)
	case escapeMore:
		if r < 0x20 || r > 0x2f {
			f.state = ground
		}
	case csi:
		if r >= 0x40 && r <= 0x7e || r == can || r == sub || r > 0x7e {
			f.state = ground
		} else if r == esc {
			f.state = escaped
		}
	case text:
		switch r {
		case bel, can, sub, 0x9c:
			f.state = ground
		case esc:
			f.state = textEscape
		}
	case textEscape:
		if r == '\\' {
			f.state = ground
		} else {
			f.state = afterEscape(r)
		}
	default:
		return f.plain(out, r)
	}
	return out
}

func afterEscape(r rune) state {
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

func (f *Filter) plain(out []byte, r rune) []byte {
	if f.cr {
		f.cr = false
		out = append(out, '\n')
		if r == '\n' {
			return out
		}
	}
	switch r {
	case '\n', '\t':
		return append(out, byte(r))
	case '\r':
		f.cr = true
		return out
	case esc:
		f.state = escaped
		return out
	case 0x9b:
		f.state = csi
		return out
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f:
		f.state = text
		return out
	}
	if !printable(r) {
		return out
	}
	return utf8.AppendRune(out, r)
}

// printable refuses control characters, and marks that make a terminal show text in another order.
func printable(r rune) bool {
	return !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) && r != '\u2028' && r != '\u2029'
}

// Line makes s one line of clean text, for names and messages.
func Line(s string) string {
	var f Filter
	out := append(f.Clean([]byte(s)), f.Flush()...)
	return strings.Join(strings.Fields(string(out)), " ")
}

// Text makes s clean text of any number of lines.
func Text(s string) string {
	var f Filter
	return string(append(f.Clean([]byte(s)), f.Flush()...))
}
