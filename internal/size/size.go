// Package size reads and writes numbers of bytes as people do: "512MiB". Sizes of jobs, policies, settings and
// messages are all written this way.
package size

import (
	"fmt"
	"strconv"
	"strings"
)

var units = []struct {
	suffix string
	bytes  int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// Format writes n bytes in the largest unit that keeps the number whole, such as "512MiB" or "1500B".
func Format(n int64) string {
	for _, u := range units {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// Parse reads a whole number and a unit: B, KiB, MiB, GiB, TiB or one of the short forms k, m, g, t, which are
// binary too. A number without a unit is bytes. The error says what is wanted.
func Parse(s string) (int64, error) {
	digits := strings.TrimRight(s, "BKMGTibkmgt")
	unit, ok := unitOf(s[len(digits):])
	n, err := strconv.ParseInt(digits, 10, 64)
	if whole, _, fraction := strings.Cut(digits, "."); ok && fraction && isDigits(whole) {
		return 0, fmt.Errorf("want a whole number: %.40q in a smaller unit, such as \"1536MiB\" for \"1.5GiB\"", s)
	}
	if !ok || err != nil || n < 0 || (n > 0 && unit > (1<<63-1)/n) {
		return 0, fmt.Errorf("not a size such as \"512MiB\" or \"2g\": %.40q", s)
	}
	return n * unit, nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func unitOf(suffix string) (int64, bool) {
	switch strings.ToLower(suffix) {
	case "", "b":
		return 1, true
	case "k", "kib", "kb":
		return 1 << 10, true
	case "m", "mib", "mb":
		return 1 << 20, true
	case "g", "gib", "gb":
		return 1 << 30, true
	case "t", "tib", "tb":
		return 1 << 40, true
	}
	return 0, false
}
