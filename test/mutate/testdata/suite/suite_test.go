package suite

import "testing"

func TestShorten(t *testing.T) {
	if got := Shorten("abcdef", 3); got != "abc" {
		t.Errorf("got %q, want abc", got)
	}
	if got := Shorten("ab", 3); got != "ab" {
		t.Errorf("got %q, want ab", got)
	}
}

func TestCount(t *testing.T) {
	out := make(chan int, 4)
	Count(2, out)
	sum := 0
	for n := range out {
		sum += n
	}
	if sum != 1 {
		t.Errorf("got %d, want 1", sum)
	}
}

func TestEven(t *testing.T) {
	if got := Even(3); got != 4 {
		t.Errorf("got %d, want 4", got)
	}
}
