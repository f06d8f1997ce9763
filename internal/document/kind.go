package document

import (
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"
)

// Limits of a document whose Kind says nothing else.
const (
	DefaultMaxBytes = 1 << 20
	DefaultMaxDepth = 32
)

// Kind is one kind of document: its name, its limits, and the words that its messages add to those of this
// package. A Kind is not changed after its first use.
type Kind struct {
	// Name is what messages call the document: "the job is empty".
	Name string
	// MaxBytes bounds the text. Zero means DefaultMaxBytes.
	MaxBytes int
	// MaxDepth bounds the nesting of maps and lists. Zero means DefaultMaxDepth.
	MaxDepth int
	// TooLarge says what to do with a text of more than MaxBytes. Empty adds nothing.
	TooLarge string
	// NotUTF8 says what to do with other bytes. Empty means "save the text as UTF-8".
	NotUTF8 string
	// Unknown begins the message about a key that nobody knows. Empty means "unknown field".
	Unknown string

	// Values describes, per type with an UnmarshalText method, what its text looks like.
	Values map[reflect.Type]string
	// Unsupported lists, per name of a struct type, the fields that the format has and this version does not
	// implement. They are refused by name: a document that asks for one must not pass as one that does not.
	Unsupported map[string][]string
	// Synonyms maps, per name of a struct type, what a field is called elsewhere to its name here.
	Synonyms map[string]map[string]string
	// Hints helps with a value of the wrong form. The key is "Type.field", or "Type" for the elements of a list.
	Hints map[string]Hint
	// Elsewhere says, per name of a struct type, where a field of another type belongs.
	Elsewhere map[string]Elsewhere
}

// Hint helps with a value that has the wrong form.
type Hint struct {
	// Example is a right value.
	Example string
	// Advice is appended to the message.
	Advice string
}

// Elsewhere is a type whose fields people write into another one, and what to tell them.
type Elsewhere struct {
	Type   reflect.Type
	Advice string
}

func (k *Kind) maxBytes() int {
	if k.MaxBytes == 0 {
		return DefaultMaxBytes
	}
	return k.MaxBytes
}

func (k *Kind) maxDepth() int {
	if k.MaxDepth == 0 {
		return DefaultMaxDepth
	}
	return k.MaxDepth
}

// ReadAll reads a document from in. Of one that is too large it reads just enough for CheckText to refuse it.
func (k *Kind) ReadAll(in io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(in, int64(k.maxBytes())+1))
}

// CheckText checks what a text must be in any notation: at most MaxBytes of UTF-8. Its error is a *FieldError.
func (k *Kind) CheckText(data []byte) error {
	if most := k.maxBytes(); len(data) > most {
		return &FieldError{Message: fmt.Sprintf("%d bytes, more than the %d%s allowed%s", len(data), most, inMiB(most), advice(k.TooLarge))}
	}
	if utf8.Valid(data) {
		return nil
	}
	line, start := 1, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			what := k.NotUTF8
			if what == "" {
				what = "save the text as UTF-8"
			}
			return &FieldError{
				Line: line, Column: utf8.RuneCount(data[start:i]) + 1,
				Message: fmt.Sprintf("byte 0x%02x is not UTF-8: %s", data[i], what),
			}
		}
		i += size
		if r == '\n' {
			line, start = line+1, i
		}
	}
	return nil
}

func inMiB(n int) string {
	if n%(1<<20) != 0 {
		return ""
	}
	return fmt.Sprintf(" (%d MiB)", n>>20)
}

func advice(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
