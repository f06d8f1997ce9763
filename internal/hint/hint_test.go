package hint

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

type own struct{}

func (own) Error() string { return "own" }
func (own) Hint() string  { return "own hint" }

func TestHint(t *testing.T) {
	leaf := With(io.EOF, "look at %s", "it")
	for name, tc := range map[string]struct {
		err        error
		hint, text string
	}{
		"no hint":          {io.EOF, "", "EOF"},
		"with":             {leaf, "look at it", "EOF; look at it"},
		"wrapped":          {fmt.Errorf("read: %w", leaf), "look at it", "read: EOF; look at it"},
		"replaced":         {With(fmt.Errorf("read: %w", leaf), "set x"), "set x", "read: EOF; set x"},
		"joined":           {errors.Join(io.ErrClosedPipe, leaf), "look at it", "io: read/write on closed pipe\nEOF; look at it"},
		"a type's own":     {fmt.Errorf("do: %w", own{}), "own hint", "do: own; own hint"},
		"percent is plain": {With(io.EOF, "%s", "100%"), "100%", "EOF; 100%"},
	} {
		if got := Of(tc.err); got != tc.hint {
			t.Errorf("%s: got hint %q, want %q", name, got, tc.hint)
		}
		if got := Text(tc.err); got != tc.text {
			t.Errorf("%s: got text %q, want %q", name, got, tc.text)
		}
	}
	if With(nil, "x") != nil {
		t.Error("got an error for nil, want nil")
	}
	if !errors.Is(leaf, io.EOF) {
		t.Errorf("got %v, want it to stay EOF", leaf)
	}
}
