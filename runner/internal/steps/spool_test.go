package steps

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/job"
)

// made is the log of a spool with room for limit bytes that got pieces.
func made(t *testing.T, limit int64, pieces ...string) (*log, string) {
	t.Helper()
	s := newSpool(limit)
	t.Cleanup(s.close)
	for _, p := range pieces {
		s.write([]byte(p))
	}
	return read(t, s)
}

func read(t *testing.T, s *spool) (*log, string) {
	t.Helper()
	l, err := s.finish()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(l.reader())
	if err != nil || int64(len(text)) != l.size {
		t.Fatalf("read %d bytes, %v; want %d", len(text), err, l.size)
	}
	return l, string(text)
}

// TestSpool: the log has the beginning and the end in whole lines, or at least in whole characters, and the gap is exact.
func TestSpool(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		limit        int64
		pieces       []string
		before       string
		bytes, lines int64
		after        string
	}{
		{"empty", 20, nil, "", 0, 0, ""},
		{"all fits", 20, []string{"0123456789", "0123456789"}, "01234567890123456789", 0, 0, ""},
		{"whole lines", 20, []string{"aaa\nbbb\nccc\n", "ddd\neee\nfff\nggg\n"}, "aaa\nbbb\n", 12, 3, "fff\nggg\n"},
		{"one piece", 20, []string{"aaa\nbbb\nccc\nddd\neee\nfff\nggg\n"}, "aaa\nbbb\n", 12, 3, "fff\nggg\n"},
		{"byte by byte", 20, strings.Split("aaa\nbbb\nccc\nddd\neee\nfff\nggg\n", ""), "aaa\nbbb\n", 12, 3, "fff\nggg\n"},
		{"a long line", 20, []string{strings.Repeat("x", 99), "\n"}, strings.Repeat("x", 10) + "\n", 80, 0, strings.Repeat("x", 9) + "\n"},
		{"characters", 8, []string{"abcé", "12345", "éxyz"}, "abc\n", 9, 0, "xyz"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, got := made(t, tt.limit, tt.pieces...)
			want := tt.before
			if tt.bytes > 0 {
				want += job.LogGap(tt.bytes, tt.lines) + tt.after
			}
			if got != want || l.gapBytes != tt.bytes || l.gapLines != tt.lines {
				t.Errorf("got %q with a gap of %d bytes and %d lines; want %q, %d and %d", got, l.gapBytes, l.gapLines, want, tt.bytes, tt.lines)
			}
		})
	}
}

// TestSpool_Exact: printed = kept + left out, in bytes and in lines, for every size of the output around the limit.
func TestSpool_Exact(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for i := range 300 {
		fmt.Fprintf(&all, "%0*d\n", i%7+1, i)
	}
	for n := 1; n < all.Len(); n++ {
		text := all.String()[:n]
		l, got := made(t, 200, text[:n/3], text[n/3:])
		gap := ""
		if l.gapBytes > 0 {
			gap = job.LogGap(l.gapBytes, l.gapLines)
		}
		before, after := got[:l.gapAt], got[l.gapAt+int64(len(gap)):]
		if l.gapBytes > 0 && got[l.gapAt:l.gapAt+int64(len(gap))] != gap {
			t.Fatalf("%d bytes: at %d of %q is not %q", n, l.gapAt, got, gap)
		}
		if int64(len(before)+len(after))+l.gapBytes != int64(n) || l.kept != int64(len(before)+len(after)) || l.kept > 200 {
			t.Fatalf("%d bytes: kept %d (%d in the text), left out %d", n, l.kept, len(before)+len(after), l.gapBytes)
		}
		if !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after) {
			t.Fatalf("%d bytes: %q … %q are not its ends", n, before, after)
		}
		if lines := int64(strings.Count(before+after, "\n")) + l.gapLines; lines != int64(strings.Count(text, "\n")) {
			t.Fatalf("%d bytes: got %d lines in all, want %d", n, lines, strings.Count(text, "\n"))
		}
		if n > 200 && (!strings.HasSuffix(before, "\n") || text[n-len(after)-1] != '\n') {
			t.Fatalf("%d bytes: %q … %q are not whole lines", n, before, after)
		}
	}
}

// TestSpool_FullDisk: after a write that failed nothing more is taken, so that what is kept is a beginning, and the loss
// is exact. Once the ring goes round, a failed write leaves old bytes among new ones: then the head alone is kept.
func TestSpool_FullDisk(t *testing.T) {
	t.Parallel()
	broken, err := os.Open(os.DevNull) // for reading: a write fails, as on a full disk
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	head, longer := strings.Repeat("x", 49)+"\n", strings.Repeat("y", 70)+"\n" // a piece that is longer than the ring
	for _, tt := range []struct{ before, lost, want string }{
		{"in the head\n", "lost\n", "in the head\n"},
		{head + "ring\n", "lost\n", head + "ring\n"},
		{head + strings.Repeat("ring\n", 30), "lost\n", head},
		{head, longer, head},
	} {
		s := newSpool(100)
		file := s.file
		s.write([]byte(tt.before))
		s.file = broken
		s.write([]byte(tt.lost))
		s.file = file
		s.write([]byte("after the loss\n"))
		l, got := read(t, s)
		printed := len(tt.before) + len(tt.lost+"after the loss\n")
		if want := tt.want + job.LogGap(int64(printed-len(tt.want)), l.gapLines); got != want || l.kept != int64(len(tt.want)) {
			t.Errorf("got %q, kept %d; want %q", got, l.kept, want)
		}
		if got, want := l.gapLines, s.lines-int64(strings.Count(tt.want, "\n")); got != want {
			t.Errorf("got %d lines left out, want %d", got, want)
		}
		s.close()
	}
}

// TestSpool_NoName: a worker that is killed leaves no file behind.
func TestSpool_NoName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := newSpool(100)
	defer s.close()
	s.write([]byte("x"))
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 0 {
		t.Errorf("got files %v, %v; want none with a name", left, err)
	}
}

// TestSpool_NoFile: without room for temporary files the log is lost, and the job goes on.
func TestSpool_NoFile(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	s := newSpool(100)
	s.write([]byte("lost"))
	defer s.close()
	if _, err := s.finish(); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("got error %v, want one that says where to look", err)
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Build": "build", "run the tests!": "run-the-tests", "../../etc": "etc", "é": "step", "": "step", "take 9 of 0": "take-9-of-0",
		strings.Repeat("a", 60): strings.Repeat("a", 40),
	} {
		if got := slug(in); got != want {
			t.Errorf("slug(%q): got %q, want %q", in, got, want)
		}
	}
}
