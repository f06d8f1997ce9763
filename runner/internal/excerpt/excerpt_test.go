package excerpt

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"slipway/job"
)

func excerptOf(size int, pieces ...string) job.Output {
	e := New(size)
	for _, p := range pieces {
		e.Write([]byte(p))
	}
	return e.Output()
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		pieces []string
		want   job.Output
	}{
		{"nothing", nil, job.Output{}},
		{"short", []string{"ab", "cd"}, job.Output{Head: "abcd", Bytes: 4}},
		{"just fits", []string{"abcdefgh", "ijklmnop"}, job.Output{Head: "abcdefghijklmnop", Bytes: 16}},
		{"one too many", []string{"abcdefgh", "ijklmnopq"}, job.Output{Head: "abcdefgh", Elided: 1, Tail: "jklmnopq", Bytes: 17}},
		{"one piece", []string{strings.Repeat("x", 100)}, job.Output{Head: "xxxxxxxx", Elided: 84, Tail: "xxxxxxxx", Bytes: 100}},
		{"rune over both edges, complete", []string{"1234567é", "abc"}, job.Output{Head: "1234567éabc", Bytes: 12}},
		{"rune over the head's edge", []string{"1234567é", strings.Repeat("x", 20)}, job.Output{Head: "1234567", Elided: 14, Tail: "xxxxxxxx", Bytes: 29}},
		{"rune over the tail's edge", []string{strings.Repeat("x", 20), "é1234567"}, job.Output{Head: "xxxxxxxx", Elided: 14, Tail: "1234567", Bytes: 29}},
		{"invalid byte", []string{"a\x80b"}, job.Output{Head: "a\uFFFDb", Bytes: 3}},
		{"rune in two writes", []string{"\xc3", "\xa9"}, job.Output{Head: "é", Bytes: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := excerptOf(8, tt.pieces...); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestExcerpt_Size: whatever a step prints, its excerpt takes a bounded part of the result's message.
func TestExcerpt_Size(t *testing.T) {
	t.Parallel()
	const size = 100
	for _, unit := range []string{"\x00", "<", "\"", "\xff", "é", "x", "\n", "\u2028", "\x1b[31m"} {
		for _, n := range []int{1, 50, 199, 1000} {
			o := excerptOf(size, strings.Repeat(unit, n))
			b, err := json.Marshal(o.Head + o.Tail)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > 4*size+2 {
				t.Errorf("%d × %q: %d bytes of JSON, want at most %d", n, unit, len(b), 4*size)
			}
		}
	}
}

// TestExcerpt_Memory: an excerpt takes the memory of its size, however much goes through it and in whatever pieces.
func TestExcerpt_Memory(t *testing.T) {
	t.Parallel()
	const size, all = 1 << 10, 8 << 20
	for _, piece := range []int{1, size - 1, size + 1, all} {
		e := New(size)
		for sent := 0; sent < all; sent += piece {
			e.Write(make([]byte, piece))
			if got := cap(e.head) + cap(e.tail); got > 8*size {
				t.Fatalf("pieces of %d: it holds %d bytes after %d, want at most %d", piece, got, sent+piece, 8*size)
			}
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add([]byte("hello"), []byte("\xc3\xa9"), uint8(4))
	f.Add([]byte(strings.Repeat("é", 40)), []byte("\x80\x80\x80\x80\x80"), uint8(7))
	f.Add([]byte("\U000c9249"), []byte("0\U000c924900"), uint8(4)) // the tail began with three bytes of a character
	f.Fuzz(func(t *testing.T, a, b []byte, size uint8) {
		o := excerptOf(int(size)+1, string(a), string(b))
		if o.Bytes != int64(len(a)+len(b)) {
			t.Fatalf("got %d bytes, want %d", o.Bytes, len(a)+len(b))
		}
		if !utf8.ValidString(o.Head) || !utf8.ValidString(o.Tail) {
			t.Fatalf("not UTF-8: %q %q", o.Head, o.Tail)
		}
		all := string(a) + string(b)
		if utf8.ValidString(all) {
			if got := int64(len(o.Head)+len(o.Tail)) + o.Elided; got != o.Bytes {
				t.Fatalf("head, tail and elided make %d bytes, want %d", got, o.Bytes)
			}
			if !strings.HasPrefix(all, o.Head) || !strings.HasSuffix(all, o.Tail) {
				t.Fatalf("%q … %q is no excerpt of %q", o.Head, o.Tail, all)
			}
		}
		if o.Elided < 0 {
			t.Fatalf("elided %d", o.Elided)
		}
	})
}

func TestShorten(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in    string
		limit int
		want  string
	}{{"short", 10, "short"}, {"0123456789ab", 10, "012345 …"}, {"01234éé89ab", 10, "01234 …"}}
	for _, tt := range tests {
		if got := Shorten(tt.in, tt.limit); got != tt.want {
			t.Errorf("Shorten(%q, %d): got %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

func TestJSONSize(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "a\"b\\c\n\t", "<&>", "\x00\x1b", "é\u2028", "\U0001F600"} {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := JSONSize(s); got != len(b) {
			t.Errorf("%q: got %d, want %d", s, got, len(b))
		}
	}
}
