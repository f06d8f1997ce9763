package excerpt

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Shorten cuts s to at most limit bytes, at the edge of a character.
func Shorten(s string, limit int) string {
	const mark = " …"
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(mark)], "") + mark
}

// JSONSize is how many bytes encoding/json makes of s.
func JSONSize(s string) int {
	n := 2
	for _, r := range s {
		n += jsonLen(r, len(string(r)))
	}
	return n
}

func valid(p []byte) string { return strings.ToValidUTF8(string(p), "\uFFFD") }

// LineEnds counts the line ends in p.
func LineEnds(p []byte) int64 { return int64(bytes.Count(p, []byte{'\n'})) }

// WholeRunes cuts off the beginning of a character at the end of p.
func WholeRunes(p []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(p)); i++ {
		if rest := p[len(p)-i:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				return p[:len(p)-i]
			}
			break
		}
	}
	return p
}

// SkipPart cuts off the end of a character at the beginning of p: up to three bytes.
func SkipPart(p []byte) []byte {
	for i := range utf8.UTFMax {
		if i == len(p) || utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p
}

// fitPrefix returns the longest prefix of p that takes at most budget bytes of JSON.
func fitPrefix(p []byte, budget int) []byte {
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		if budget -= jsonLen(r, n); budget < 0 {
			return p[:i]
		}
		i += n
	}
	return p
}

// fitSuffix returns the longest suffix of p that takes at most budget bytes of JSON.
func fitSuffix(p []byte, budget int) []byte {
	for i := len(p); i > 0; {
		r, n := utf8.DecodeLastRune(p[:i])
		if budget -= jsonLen(r, n); budget < 0 {
			return p[i:]
		}
		i -= n
	}
	return p
}

// jsonLen is how many bytes encoding/json makes of a rune of n bytes.
func jsonLen(r rune, n int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
		return 6
	}
	return n
}
