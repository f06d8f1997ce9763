package sanitize

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

func TestFilter(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"plain":                      {"hello\n\tworld ünïcode 日本\n", "hello\n\tworld ünïcode 日本\n"},
		"colors":                     {"\x1b[1;31mred\x1b[0m", "red"},
		"cursor and clear":           {"a\x1b[2J\x1b[Hb", "ab"},
		"window title":               {"a\x1b]0;evil\x07b", "ab"},
		"clipboard":                  {"a\x1b]52;c;ZXZpbA==\x1b\\b", "ab"},
		"hyperlink":                  {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"device control":             {"a\x1bPq#0~\x1b\\b", "ab"},
		"8-bit control sequence":     {"a\u009b31mb", "ab"},
		"raw 8-bit byte":             {"a\x9b31mb", "a\uFFFD31mb"},
		"two-character escape":       {"a\x1bcb", "ab"},
		"charset selection":          {"a\x1b(0b", "ab"},
		"windows line ends":          {"a\r\nb\r\n", "a\nb\n"},
		"overwriting a line":         {"secret\rfaked", "secret\nfaked"},
		"backspaces":                 {"abc\b\b\bxyz", "abcxyz"},
		"bell and nul":               {"a\x07\x00b", "ab"},
		"right to left override":     {"abc\u202edef", "abcdef"},
		"invalid utf-8":              {"a\xff\xfeb", "a\uFFFD\uFFFDb"},
		"unfinished string at line":  {"\x1b]0;never ends\nnext", "\nnext"},
		"unfinished sequence at end": {"a\x1b[3", "a"},
		"cut character at end":       {"a\xe6\x97", "a\uFFFD"},
		"carriage return at end":     {"a\r", "a\n"},
	} {
		if got := Text(tc.in); got != tc.want {
			t.Errorf("%s: Text(%q) = %q, want %q", name, tc.in, got, tc.want)
		}
	}
}

func TestLine(t *testing.T) {
	if got, want := Line("a\nsucceeded\x1b[A\r\tb "), "a succeeded b"; got != want {
		t.Errorf("Line = %q, want %q", got, want)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add([]byte("a\x1b]0;x\x1b\\\x1b[31mb\r\n\xe6\x97\xa5"), uint(3))
	f.Add([]byte("\x9b\u009b1m\u202e\x1b\x1b[\x1bP"), uint(1))
	f.Fuzz(func(t *testing.T, in []byte, size uint) {
		var whole, pieces Filter
		want := append(whole.Clean(in), whole.Flush()...)
		var got []byte
		for rest := in; len(rest) > 0; {
			n := min(int(size%7)+1, len(rest))
			got = append(got, pieces.Clean(rest[:n])...)
			rest = rest[n:]
		}
		got = append(got, pieces.Flush()...)
		if !bytes.Equal(got, want) {
			t.Fatalf("cut into pieces: %q, whole: %q", got, want)
		}
		if !utf8.Valid(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		for _, r := range string(got) {
			if r != '\n' && r != '\t' && !printable(r) {
				t.Fatalf("%q lets %U through", got, r)
			}
		}
	})
}
