package document

import (
	"fmt"
	"unicode/utf8"
)

// scanner goes through a text character by character, and knows the place of each. Its values are those that hold no
// others.
type scanner struct {
	data []byte // UTF-8
	pos  int

	// Place of the offset counted. A document is often one long line, so no character is counted twice.
	counted, line, column int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end and where no JSON has one.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// place returns line and column of an offset. It counts on from the last one, if that was before.
func (s *scanner) place(at int) (line, column int) {
	if at < s.counted {
		s.counted, s.line, s.column = 0, 1, 0
	}
	for ; s.counted < at; s.counted++ {
		switch c := s.data[s.counted]; {
		case c == '\n':
			s.line, s.column = s.line+1, 0
		case utf8.RuneStart(c):
			s.column++
		}
	}
	return s.line, s.column + 1
}

// mismatch says that a value is of another kind than wanted.
func (s *scanner) mismatch(want string) error {
	kind, known := kindOf(s.peek())
	if !known {
		return s.unexpected(want)
	}
	return s.fail(wrongKind(want, kind))
}

func kindOf(c byte) (kind NodeKind, known bool) {
	switch {
	case c == '{':
		return Map, true
	case c == '[':
		return List, true
	case c == '"':
		return String, true
	case c == 't', c == 'f':
		return Bool, true
	case c == 'n':
		return Null, true
	case c == '-' || c >= '0' && c <= '9':
		return Number, true
	}
	return 0, false
}

func (s *scanner) unexpected(want string) error {
	if s.pos == len(s.data) {
		return s.fail("the text ends where " + want + " is wanted")
	}
	c, _ := utf8.DecodeRune(s.data[s.pos:])
	return s.fail(fmt.Sprintf("%q where %s is wanted", c, want))
}

func (s *scanner) fail(message string) error { return s.failAt(s.pos, "", message) }

func (s *scanner) failAt(at int, path, message string) error {
	line, column := s.place(at)
	return &FieldError{Path: path, Line: line, Column: column, Message: message}
}
