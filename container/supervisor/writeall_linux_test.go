package supervisor_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"testing"
	"time"

	"slipway/container"
)

func entries(list ...container.NewFile) iter.Seq2[container.NewFile, error] {
	return func(yield func(container.NewFile, error) bool) {
		for _, n := range list {
			if !yield(n, nil) {
				return
			}
		}
	}
}

func file(path, content string) container.NewFile {
	return container.NewFile{Path: path, Type: container.TypeFile, Mode: 0o644, Size: int64(len(content)), Content: strings.NewReader(content)}
}

func TestWriteAll(t *testing.T) {
	r := setup(t)
	when := time.Date(2020, 1, 2, 3, 4, 5, 678, time.UTC)
	r.sh("echo old > f; ln f hard; ln -s ../tmp/x l2; mkdir -p d/keep")
	list := []container.NewFile{
		{Path: "ro", Type: container.TypeDir, Mode: 0o555, ModTime: when},
		file("ro/in", "inside"),
		file("f", "new"),
		{Path: "l2", Type: container.TypeFile, Mode: 0o600, ModTime: when},
		{Path: "s", Type: container.TypeFile, Mode: 0o755 | fs.ModeSetuid, Size: 1, Content: strings.NewReader("s")},
		{Path: "l", Type: container.TypeSymlink, Target: "/etc/passwd", ModTime: when},
		{Path: "d", Type: container.TypeDir, Mode: 0o750},
		file("made/on/the/way", "x"),
	}
	infos, err := r.Files().WriteAll(t.Context(), entries(list...))
	if err != nil {
		t.Fatalf("WriteAll: %v", err)
	}
	for i, info := range infos {
		if info.Path != list[i].Path || info.Type != list[i].Type {
			t.Errorf("answer %d = %+v, want %s", i, info, list[i].Path)
		}
		if now, err := r.Files().Stat(t.Context(), info.Path); err != nil || now != info {
			t.Errorf("%s is %+v, %v; WriteAll said %+v", info.Path, now, err, info)
		}
		if !list[i].ModTime.IsZero() && info.ModTime != when.UnixNano() {
			t.Errorf("%s: time %d, want %d", info.Path, info.ModTime, when.UnixNano())
		}
	}
	if infos[0].Mode != 0o555 || infos[4].Mode != 0o4755 || infos[6].Mode != 0o750 || infos[5].Target != "/etc/passwd" {
		t.Errorf("modes = %o %o %o", infos[0].Mode, infos[4].Mode, infos[6].Mode)
	}
	_, out := r.sh("cat f hard; ls -d d/keep; chmod 755 ro")
	if out != "new\nold\nd/keep\n" && out != "newold\nd/keep\n" {
		t.Errorf("the other name of a replaced file changed: %q", out)
	}
}

func TestWriteAllErrors(t *testing.T) {
	r := setup(t)
	r.sh("mkdir dir; ln -s ../tmp out")
	boom := errors.New("boom")
	tests := []struct {
		name string
		seq  iter.Seq2[container.NewFile, error]
		want error
	}{
		{"above", entries(file("../x", "x")), container.ErrPath},
		{"through a link", entries(file("out/x", "x")), container.ErrPath},
		{"over a folder", entries(file("dir", "x")), container.ErrExists},
		{"below a file", entries(file("f", "x"), file("f/g", "y")), container.ErrExists},
		{"a device", entries(container.NewFile{Path: "dev", Type: container.TypeOther}), container.ErrUnsupported},
		{"short content", entries(container.NewFile{Path: "s", Type: container.TypeFile, Size: 5, Content: strings.NewReader("abc")}), io.ErrUnexpectedEOF},
		{"no content", entries(container.NewFile{Path: "s", Type: container.TypeFile, Size: 5}), io.ErrUnexpectedEOF},
		{"failing sequence", func(yield func(container.NewFile, error) bool) { _ = yield(container.NewFile{}, boom) }, boom},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := r.Files().WriteAll(t.Context(), tt.seq); !errors.Is(err, tt.want) {
				t.Errorf("WriteAll = %v, want %v", err, tt.want)
			}
		})
	}
	// An error in the middle of much data must not leave anybody waiting.
	many := func(yield func(container.NewFile, error) bool) {
		for i := range 1000 {
			n := file(fmt.Sprintf("m%d", i), strings.Repeat("x", 10000))
			if i == 10 {
				n.Path = "../x"
			}
			if !yield(n, nil) {
				return
			}
		}
	}
	if _, err := r.Files().WriteAll(t.Context(), many); !errors.Is(err, container.ErrPath) {
		t.Errorf("WriteAll = %v, want ErrPath", err)
	}
	if infos, err := r.Files().WriteAll(t.Context(), entries()); err != nil || len(infos) != 0 {
		t.Errorf("WriteAll of nothing = %v, %v", infos, err)
	}
}
