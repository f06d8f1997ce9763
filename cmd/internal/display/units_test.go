package display

import (
	"testing"
	"time"
)

func TestShortAndSize(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Microsecond: "<1ms", 1500 * time.Microsecond: "2ms", 1234 * time.Millisecond: "1.23s",
		12345 * time.Millisecond: "12.3s", 100*time.Second + 300*time.Millisecond: "1m40s",
	} {
		if got := Short(d); got != want {
			t.Errorf("Short(%d) = %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 3 << 30: "3.0 GiB"} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %s, want %s", n, got, want)
		}
	}
}
