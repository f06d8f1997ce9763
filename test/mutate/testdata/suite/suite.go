// Package suite has tests that notice some mutants.
package suite

import "time"

// Shorten returns text, cut to most bytes.
func Shorten(text string, most int) string {
	if len(text) > most {
		return text[:most]
	}
	return text
}

// Count sends the numbers up to n.
func Count(n int, out chan<- int) {
	for i := 0; i < n; i++ {
		out <- i
	}
	close(out)
}

// Even returns n, or the next even number.
func Even(n int) int {
	for n%2 != 0 {
		n++
	}
	return n
}

// Unreached has no test.
func Unreached() int { return 7 }

// Patience is used by no test.
var Patience = 3 * time.Second
