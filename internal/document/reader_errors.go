package document

import (
	"fmt"
	"unicode/utf8"
)

// below puts path before that of an error. An error that is no FieldError becomes one, at the value that begins at start.
func (r *Reader) below(start int, path string, err error) error {
	e, ok := err.(*FieldError) //nolint:errorlint // a FieldError within another error has a path of its own
	if !ok {
		return r.failAt(start, path, err.Error())
	}
	e.Path = joinPath(path, e.Path)
	return e
}

// place returns line and column of an offset. It counts on from the last one, if that was before.
func (r *Reader) place(at int) (line, column int) {
	if at < r.counted {
		r.counted, r.line, r.column = 0, 1, 0
	}
	for ; r.counted < at; r.counted++ {
		switch c := r.data[r.counted]; {
		case c == '\n':
			r.line, r.column = r.line+1, 0
		case utf8.RuneStart(c):
			r.column++
		}
	}
	return r.line, r.column + 1
}

// mismatch says that a value is of another kind than wanted.
func (r *Reader) mismatch(want string) error {
	kind, known := kindOf(r.peek())
	if !known {
		return r.unexpected(want)
	}
	return r.fail(wrongKind(want, kind))
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

func (r *Reader) unexpected(want string) error {
	if r.pos == len(r.data) {
		return r.fail("the text ends where " + want + " is wanted")
	}
	c, _ := utf8.DecodeRune(r.data[r.pos:])
	return r.fail(fmt.Sprintf("%q where %s is wanted", c, want))
}

func givenTwice(firstLine int) string { return fmt.Sprintf("given twice, first on line %d", firstLine) }

func (r *Reader) fail(message string) error { return r.failAt(r.pos, "", message) }

func (r *Reader) failAt(at int, path, message string) error {
	line, column := r.place(at)
	return &FieldError{Path: path, Line: line, Column: column, Message: message}
}
