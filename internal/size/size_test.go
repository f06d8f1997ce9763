package size

import "testing"

func TestParse(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "1500": 1500, "1500B": 1500, "1k": 1 << 10, "1KB": 1 << 10, "512MiB": 512 << 20, "2g": 2 << 30, "8388607t": 8388607 << 40,
	} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-1", "1.5g", "1 g", "1x", "gg", "8388608t", "99999999999999999999"} {
		if got, err := Parse(in); err == nil {
			t.Errorf("%q: got %d, want an error", in, got)
		}
	}
}

func FuzzFormat(f *testing.F) {
	for _, n := range []int64{0, 1, 1 << 10, 3 << 20, 1<<63 - 1} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		if n < 0 {
			return
		}
		if got, err := Parse(Format(n)); err != nil || got != n {
			t.Errorf("%d: got %d, %v from %s", n, got, err, Format(n))
		}
	})
}
