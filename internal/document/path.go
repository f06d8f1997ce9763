package document

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// KeyPath appends a key to a path. A key that is no plain name is quoted.
func KeyPath(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// IndexPath appends a position, counted from 0, to a path.
func IndexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// joinPath puts outer before inner.
func joinPath(outer, inner string) string {
	if inner == "" || inner[0] == '[' {
		return outer + inner
	}
	return outer + "." + inner
}

// within reports whether path names outer or something in it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
}

// parentPath cuts the last part off path.
func parentPath(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), strings.LastIndexByte(path, '['), 0)]
}

// Quote makes a piece of the input fit for a message: short, on one line, without anything that a terminal obeys.
func Quote(s string) string {
	const most = 40
	if cut := []rune(s); len(s) > most && len(cut) > most {
		return fmt.Sprintf("%q…", string(cut[:most]))
	}
	return fmt.Sprintf("%q", s)
}
