package display

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "0s ago", -time.Hour: "0s ago", 59900 * time.Millisecond: "59s ago", time.Minute: "1m ago", 119 * time.Second: "1m ago",
		time.Hour: "1h ago", 47 * time.Hour: "47h ago", 48 * time.Hour: "2d ago", 300 * 24 * time.Hour: "300d ago",
	} {
		if got := Ago(now.Add(-d), now); got != want {
			t.Errorf("Ago(%s): got %q, want %q", d, got, want)
		}
	}
	if got := Ago(time.Time{}, now); got != "" {
		t.Errorf("Ago of no time: got %q, want nothing", got)
	}
}

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
