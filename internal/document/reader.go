package document

import (
	"bytes"
	"fmt"
)

// maxMembers bounds the members of a map that Object reads: it compares each key with all before it.
const maxMembers = 256

// Reader walks over a JSON text, value by value. It accepts what RFC 8259 allows within the limits of its Kind, each
// key of a map once, and of \u escapes only those that are a character. It reads a text of many megabytes about as
// fast as it can be copied, and keeps nothing of the text.
//
// Every error is a *FieldError with place and path, and final: what the Reader does after one is undefined. A Reader
// is for one goroutine.
type Reader struct {
	scanner
	kind  *Kind
	depth int
	keys  []keyPlace        // of the maps that are open
	names map[string]string // keys without escapes that came before: most come again in every item of a list
}

type keyPlace struct {
	key string
	at  int
}

// NewReader checks data as Kind.CheckText does, and returns a Reader at its beginning.
func NewReader(data []byte, kind *Kind) (*Reader, error) {
	if err := kind.CheckText(data); err != nil {
		return nil, err
	}
	return &Reader{scanner: scanner{data: data, line: 1}, kind: kind, names: map[string]string{}}, nil
}

// Object reads a map. It calls member with each key; member reads the value. The error of a member gets its key as path.
func (r *Reader) Object(member func(key string) error) error {
	open := len(r.keys)
	err := r.members(func(key string, at int) error {
		for _, k := range r.keys[open:] {
			if k.key == key {
				first, _ := r.place(k.at)
				return r.failAt(at, KeyPath("", key), givenTwice(first))
			}
		}
		if len(r.keys)-open == maxMembers {
			return r.failAt(at, "", fmt.Sprintf("more than %d fields", maxMembers))
		}
		r.keys = append(r.keys, keyPlace{key, at})
		start := r.pos
		if err := member(key); err != nil {
			return r.below(start, KeyPath("", key), err)
		}
		return nil
	})
	r.keys = r.keys[:open]
	return err
}

func givenTwice(firstLine int) string { return fmt.Sprintf("given twice, first on line %d", firstLine) }

// Array reads a list. It calls item for each value; item reads it. The error of an item gets its position as path.
func (r *Reader) Array(item func() error) error {
	i := 0
	return r.items(func() error {
		start := r.pos
		if err := item(); err != nil {
			return r.below(start, IndexPath("", i), err)
		}
		i++
		return nil
	})
}

// String reads a string.
func (r *Reader) String() (s string, err error) {
	if r.space(); r.peek() != '"' {
		return "", r.mismatch("a string")
	}
	err = r.str(&s)
	return s, err
}

// Int reads a whole number, written without fraction and exponent.
func (r *Reader) Int() (int64, error) {
	r.space()
	start := r.pos
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return 0, r.mismatch("a whole number")
	}
	if err := r.number(); err != nil {
		return 0, err
	}
	return r.parseInt(start)
}

// Raw passes over any value and returns its text, which is valid until the data given to NewReader changes.
func (r *Reader) Raw() ([]byte, error) {
	r.space()
	start := r.pos
	if err := r.skip(); err != nil {
		return nil, err
	}
	return r.data[start:r.pos], nil
}

// End makes sure that nothing follows.
func (r *Reader) End() error {
	if r.space(); r.pos < len(r.data) {
		return r.fail("data after the end of the " + r.kind.Name)
	}
	return nil
}

// members reads a map, and calls member with each key and its offset. A key that comes twice is its matter.
func (r *Reader) members(member func(key string, at int) error) error {
	if err := r.begin('{', Map); err != nil {
		return err
	}
	for first := true; ; first = false {
		if done, err := r.separator('}', first); done || err != nil {
			return err
		}
		at := r.pos
		key, err := r.key()
		if err != nil {
			return err
		}
		if err := member(key, at); err != nil {
			return err
		}
	}
}

// items reads a list, and calls item at each value.
func (r *Reader) items(item func() error) error {
	if err := r.begin('[', List); err != nil {
		return err
	}
	for first := true; ; first = false {
		if done, err := r.separator(']', first); done || err != nil {
			return err
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// begin enters a map or a list.
func (r *Reader) begin(c byte, kind NodeKind) error {
	if r.space(); r.peek() != c {
		return r.mismatch(kind.String())
	}
	if r.depth++; r.depth > r.kind.maxDepth() {
		return r.fail(fmt.Sprintf("nested deeper than %d levels", r.kind.maxDepth()))
	}
	r.pos++
	return nil
}

// separator reads what stands before the next element: nothing, a comma, or the end, which leaves the map or list.
func (r *Reader) separator(end byte, first bool) (done bool, err error) {
	r.space()
	switch c := r.peek(); {
	case c == end:
		r.pos++
		r.depth--
		return true, nil
	case first:
		return false, nil
	case c != ',':
		return false, r.unexpected(fmt.Sprintf("',' or '%c'", end))
	}
	r.pos++
	if r.space(); r.peek() == end {
		return false, r.fail(fmt.Sprintf("no comma is allowed before '%c'", end))
	}
	return false, nil
}

// key reads a key and the colon behind it.
func (r *Reader) key() (string, error) {
	if r.peek() != '"' {
		return "", r.unexpected("a key in double quotes")
	}
	start := r.pos
	key, known := r.knownKey()
	if !known {
		if err := r.str(&key); err != nil {
			return "", err
		}
		plain := r.pos-start == len(key)+2 // the quotes; an escape is longer than its character
		if plain && len(r.names) < maxMembers {
			r.names[key] = key
		}
	}
	if r.space(); r.peek() != ':' {
		return "", r.unexpected("':' after the key " + Quote(key))
	}
	r.pos++
	r.space()
	return key, nil
}

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

// skip passes over any value.
func (r *Reader) skip() error {
	switch r.space(); r.peek() {
	case '{':
		return r.Object(func(string) error { return r.skip() })
	case '[':
		return r.Array(r.skip)
	case '"':
		_, err := r.String()
		return err
	}
	_, _, err := r.scalar()
	return err
}

// below puts path before that of an error. An error that is no FieldError becomes one, at the value that begins at start.
func (r *Reader) below(start int, path string, err error) error {
	e, ok := err.(*FieldError) //nolint:errorlint // a FieldError within another error has a path of its own
	if !ok {
		return r.failAt(start, path, err.Error())
	}
	e.Path = joinPath(path, e.Path)
	return e
}
