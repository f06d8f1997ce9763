// Package suggest finds the word that was meant by one that was misspelled.
package suggest

import "strings"

// DidYouMean is the end of a message that has a better word to offer.
func DidYouMean(word string) string {
	if word == "" {
		return ""
	}
	return `: did you mean "` + word + `"?`
}

// Fold brings a word to the way in which slipway spells its own.
func Fold(word string) string {
	var b strings.Builder
	for i, r := range word {
		switch {
		case r == '-' || r == ' ':
			r = '_'
		case r >= 'A' && r <= 'Z':
			if i > 0 && word[i-1] >= 'a' && word[i-1] <= 'z' {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Nearest returns the one of words, spelled as Fold does, that was most likely meant by word, or "": at
// most a third of the word may be wrong, unless it is a part of what was meant.
func Nearest(word string, words []string) string {
	const longest, part = 40, 4
	if len(word) > longest {
		return ""
	}
	word = Fold(word)
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, w := range words {
		d := distance(word, w)
		if len(word) >= part && strings.Contains(w, word) {
			d = min(d, 1)
		}
		if d < bestDistance && d < len(w) {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, change or swap with their
// neighbor to make b of a.
func distance(a, b string) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
