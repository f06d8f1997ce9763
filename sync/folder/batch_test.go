//go:build linux || darwin

package folder

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	wsync "slipway/sync"
)

// TestBatches: a batch is full by its files or its bytes, and ends early where the folder changes.
func TestBatches(t *testing.T) {
	many := func(dir string, n int, size int64) []wsync.NewNode {
		file := wsync.NewNode{Path: dir + "/f", Type: wsync.TypeFile, Mode: 0o600, Size: size, Data: make([]byte, size)}
		return slices.Repeat([]wsync.NewNode{file}, n)
	}
	for name, c := range map[string]struct {
		files []wsync.NewNode
		want  []int
	}{
		"none":                          {nil, nil},
		"one":                           {many("a", 1, 1), []int{1}},
		"as many as fit":                {many("a", 64, 1), []int{64}},
		"one more":                      {many("a", 65, 1), []int{64, 1}},
		"large ones":                    {many("a", 5, 600<<10), []int{2, 2, 1}},
		"exactly full":                  {many("a", 4, 512<<10), []int{2, 2}},
		"another folder after a few":    {slices.Concat(many("a", 15, 1), many("b", 15, 1)), []int{30}},
		"another folder after 16":       {slices.Concat(many("a", 16, 1), many("b", 15, 1)), []int{16, 15}},
		"a few folders, then one more":  {slices.Concat(many("a", 8, 1), many("b", 8, 1), many("c", 1, 1)), []int{16, 1}},
		"many of the same after a few":  {slices.Concat(many("a", 8, 1), many("b", 60, 1)), []int{64, 4}},
		"the bytes of one don't add up": {slices.Concat(many("a", 1, 2<<20), many("a", 3, 1)), []int{1, 3}},
	} {
		if got := batchesOf(t, c.files); !slices.Equal(got, c.want) {
			t.Errorf("%s: got batches of %v files, want %v", name, got, c.want)
		}
	}
}

// batchesOf writes the files, and returns how many each batch had.
func batchesOf(t *testing.T, files []wsync.NewNode) (sizes []int) {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"a", "b", "c"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w := newWriters(t.Context(), dir)
	defer w.close()
	for i, f := range files {
		f.Path += strconv.Itoa(i)
		if err := w.add(f, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.wait(); err != nil {
		t.Fatal(err)
	}
	nodes := make([]wsync.Node, len(files))
	w.result(nodes)
	for i, n := range nodes {
		if n.Path != files[i].Path+strconv.Itoa(i) || n.Size != files[i].Size {
			t.Errorf("file %d: got %+v", i, n)
		}
	}
	for _, b := range w.batches {
		sizes = append(sizes, len(b.at))
		if b.entries != nil {
			t.Error("a batch that is written keeps its content in memory")
		}
	}
	return sizes
}
