//go:build linux

package proctree

import (
	"os"
	"slices"
	"testing"
)

func TestParseStat(t *testing.T) {
	tail := " 7 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3\n"
	tests := []struct {
		in   string
		want Process
		ok   bool
	}{
		{"5 (sh) S" + tail, Process{ID{5, 98765}, 7, 42, 'S', 1}, true},
		{"5 (a) R 1 (b)) Z" + tail, Process{ID{5, 98765}, 7, 42, 'Z', 1}, true},
		{"5 (\n) 1) T" + tail, Process{ID{5, 98765}, 7, 42, 'T', 1}, true},
		{"5 (sh) S 7 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765", Process{ID{5, 98765}, 7, 42, 'S', 1}, true}, // the fields that are read
		{"5 (sh) S 7 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0", Process{}, false},
		{"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22", Process{}, false},
		{"5 (sh S", Process{}, false},
		{"5 (sh) S 1 2", Process{}, false},
		{"", Process{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseStat(5, []byte(tt.in)); ok != tt.ok || ok && got != tt.want {
			t.Errorf("parseStat(%q) = %+v, %v, want %+v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

// A look at the table opens a file for each process, and keeps none.
func TestReadProcessKeepsNoFile(t *testing.T) {
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before, buf := files(), make([]byte, 1024)
	for range 100 {
		if _, ok := readProcess(os.Getpid(), buf); !ok {
			t.Fatal("this process is not in the table")
		}
	}
	if after := files(); after >= before+100 {
		t.Errorf("open files before and after: got %d, %d, want about as many", before, after)
	}
}

func TestDescendantsFindsSelf(t *testing.T) {
	list, err := Descendants(os.Getppid())
	if err != nil || !slices.ContainsFunc(list, func(p Process) bool { return p.PID == os.Getpid() }) {
		t.Errorf("this process is not among the descendants of its parent: %v, %v", list, err)
	}
}
