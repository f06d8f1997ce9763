package steps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/sync/wsynctest"
)

// TestSpool_NoGap: after a loss nothing more is taken, so that what is kept is a beginning, and the loss is exact.
func TestSpool_NoGap(t *testing.T) {
	t.Parallel()
	s := newSpool(100)
	defer s.close()
	file := s.file
	s.write([]byte("beginning"))
	broken, err := os.Open(os.DevNull) // for reading: a write fails, as on a full disk
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	s.file = broken
	s.write([]byte("lost"))
	s.file = file
	s.write([]byte("after the gap"))
	got := make([]byte, 100)
	n, _ := file.ReadAt(got, 0)
	if want := "beginning"; string(got[:n]) != want || s.size != int64(len(want)) || s.lost != int64(len("lost"+"after the gap")) {
		t.Errorf("kept %q (size %d), lost %d; want %q and the rest lost", got[:n], s.size, s.lost, want)
	}
}

// TestSpool_NoName: a worker that is killed leaves no file behind.
func TestSpool_NoName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := newSpool(100)
	defer s.close()
	s.write([]byte("x"))
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 0 || s.size != 1 {
		t.Errorf("got files %v, %v, size %d; want no name and one byte", left, err, s.size)
	}
}

// TestSpool_NoFile: without room for temporary files the log is lost and counted, and the job goes on.
func TestSpool_NoFile(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	s := newSpool(100)
	s.write([]byte("lost"))
	s.close()
	if err := putSpool(t.Context(), wsynctest.NewStore(), "k", s); err == nil || s.lost != 4 {
		t.Errorf("got error %v, lost %d; want an error and 4 bytes lost", err, s.lost)
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Build": "build", "run the tests!": "run-the-tests", "../../etc": "etc", "é": "step", "": "step",
		strings.Repeat("a", 60): strings.Repeat("a", 40),
	} {
		if got := slug(in); got != want {
			t.Errorf("slug(%q): got %q, want %q", in, got, want)
		}
	}
}
