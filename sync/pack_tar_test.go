package wsync

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestTarHeader: the short way writes what archive/tar writes, or leaves it to it.
func TestTarHeader(t *testing.T) {
	for _, tt := range []struct {
		name string
		e    entry
		size int
		ok   bool
	}{
		{"plain", entry{Path: "d/f", Mode: 0o644, ModTime: 1_700_000_000 * int64(time.Second)}, 4096, true},
		{"all bits", entry{Path: strings.Repeat("x", 100), Mode: 0o7777, ModTime: 1<<63 - 1}, 256 << 10, true},
		{"before 1970", entry{Path: "f", ModTime: -1}, 0, true},
		{"control characters", entry{Path: "a\nb\x7f", Mode: 0o600}, 1, true},
		{"long", entry{Path: strings.Repeat("x", 101), Mode: 0o644}, 1, false},
		{"not ASCII", entry{Path: "\u00e9"}, 1, false},
		{"not UTF-8", entry{Path: "\xff"}, 1, false},
	} {
		got := bytes.Repeat([]byte{0xaa}, tarBlock)
		if ok := putTarHeader(got, &tt.e, tt.size); ok != tt.ok {
			t.Errorf("%s: got %v, want %v", tt.name, ok, tt.ok)
		}
		want, err := longTarHeader(&tt.e, tt.size)
		if err != nil {
			t.Errorf("%s: archive/tar: %v", tt.name, err)
		}
		if tt.ok && !bytes.Equal(got, want) {
			t.Errorf("%s: got header\n%q\nwant\n%q", tt.name, got, want)
		}
	}
}
