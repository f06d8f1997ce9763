package supervisor_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/test/eventually"
)

// A process in the box that exchanges a folder for a link, as fast as it can, never makes the file API leave the workspace.
func TestSymlinkRace(t *testing.T) {
	r := setup(t)
	if err := os.WriteFile(filepath.Join(r.root, "tmp", "f"), []byte("OUTSIDE"), 0o666); err != nil {
		t.Fatal(err)
	}
	r.sh("mkdir d; echo inside > d/f; ln -s ../tmp l")
	var stop atomic.Bool
	swapped := make(chan int)
	go func() { // RENAME_EXCHANGE of d and l: d is the link half of the time
		n, fd := 0, unix.AT_FDCWD
		for ; !stop.Load(); n++ {
			_ = unix.Renameat2(fd, filepath.Join(r.work, "d"), fd, filepath.Join(r.work, "l"), unix.RENAME_EXCHANGE)
		}
		swapped <- n
	}()
	tries, refused := 0, 0
	for begin := time.Now(); time.Since(begin) < 1500*time.Millisecond || refused == 0 && time.Since(begin) < eventually.Patience; tries++ {
		var got bytes.Buffer
		_, err := r.Files().Read(t.Context(), "d/f", &got, 0)
		if strings.Contains(got.String(), "OUTSIDE") {
			t.Fatalf("read a file outside at try %d", tries)
		}
		if errors.Is(err, container.ErrPath) {
			refused++
		}
		_ = r.Files().Write(t.Context(), "d/new", strings.NewReader("x"), 0o644)
		_ = r.Files().Delete(t.Context(), "d/new")
		_ = r.Files().ReadAll(t.Context(), []string{"d/f"}, func(c container.FileContent) error {
			if c.Err == nil {
				if b, _ := io.ReadAll(c.Reader); strings.Contains(string(b), "OUTSIDE") {
					t.Error("ReadAll left the workspace")
				}
			}
			return nil
		})
	}
	stop.Store(true)
	n := <-swapped
	if n < 1000 || refused == 0 {
		t.Errorf("no race: %d swaps, %d refusals in %d tries", n, refused, tries)
	}
	list, err := os.ReadDir(filepath.Join(r.root, "tmp"))
	if err != nil || len(list) != 1 {
		t.Errorf("outside are now %v, %v", list, err)
	}
	t.Logf("%d tries, %d swaps, %d refused", tries, n, refused)
}

const bulkFiles = 5000

func bulk() iter.Seq2[container.NewFile, error] {
	content := strings.Repeat("x", 4096)
	return func(yield func(container.NewFile, error) bool) {
		for i := range bulkFiles {
			if !yield(file(fmt.Sprintf("d%02d/f%d", i/100, i), content), nil) {
				return
			}
		}
	}
}

func bulkPaths() []string {
	var paths []string
	for n := range bulk() { //nolint:errcheck // it yields none
		paths = append(paths, n.Path)
	}
	return paths
}

func TestBulk(t *testing.T) {
	r := setup(t)
	begin := time.Now()
	infos, err := r.Files().WriteAll(t.Context(), bulk())
	if err != nil || len(infos) != bulkFiles {
		t.Fatalf("WriteAll = %d, %v", len(infos), err)
	}
	in := time.Since(begin)
	begin = time.Now()
	var total int64
	err = r.Files().ReadAll(t.Context(), bulkPaths(), func(c container.FileContent) error {
		n, err := io.Copy(io.Discard, c.Reader)
		total += n
		return errors.Join(err, c.Err)
	})
	if err != nil || total != bulkFiles*4096 {
		t.Fatalf("ReadAll = %d bytes, %v", total, err)
	}
	out := time.Since(begin)
	begin = time.Now()
	n := 0
	if err := r.Files().Walk(t.Context(), func(container.FileInfo) error { n++; return nil }); err != nil || n != bulkFiles+50 {
		t.Fatalf("Walk = %d, %v", n, err)
	}
	t.Logf("5,000 × 4 KiB: in %v, out %v, walk %v", in, out, time.Since(begin))
}

func BenchmarkBulk(b *testing.B) {
	r := setup(b)
	b.Run("in", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Files().WriteAll(b.Context(), bulk()); err != nil {
				b.Fatal(err)
			}
		}
	})
	paths := bulkPaths()
	b.Run("out", func(b *testing.B) {
		for b.Loop() {
			err := r.Files().ReadAll(b.Context(), paths, func(c container.FileContent) error {
				_, err := io.Copy(io.Discard, c.Reader)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hash", func(b *testing.B) {
		for b.Loop() {
			if err := r.Files().Hash(b.Context(), paths, func(s container.Sum) error { return s.Err }); err != nil {
				b.Fatal(err)
			}
		}
	})
}
