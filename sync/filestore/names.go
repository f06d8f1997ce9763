package filestore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

const (
	// objectMark ends the name of an object's file.
	objectMark = "@"
	// pieceMark ends the name of a folder that holds the beginning of a long component.
	pieceMark = "+"
	// lockName and draftPrefix are names of no object: those don't begin with an @.
	lockName    = "@lock"
	draftPrefix = "@put-"

	// maxKey is S3's limit, in bytes.
	maxKey = 1024
	// maxPiece is how many bytes of a component make one name. Three characters for each of them and a mark are a name
	// that every file system takes.
	maxPiece = 80
)

// errKey: no store has an object of this key.
var errKey = errors.New("invalid key")

// pathOf returns the path of an object's file, relative to the store's folder.
func pathOf(key string) (string, error) {
	if key == "" || len(key) > maxKey {
		return "", fmt.Errorf("%w: it has %d bytes, want 1 to %d", errKey, len(key), maxKey)
	}
	var b strings.Builder
	for i, component := range strings.Split(key, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		for len(component) > maxPiece {
			b.WriteString(encode(component[:maxPiece]) + pieceMark + "/")
			component = component[maxPiece:]
		}
		b.WriteString(encode(component))
	}
	return b.String() + objectMark, nil
}

// folderKey is what the keys below a folder begin with.
func folderKey(above, name string) (string, bool) {
	name, piece := strings.CutSuffix(name, pieceMark)
	component, ok := decode(name)
	if !piece {
		component += "/"
	}
	return above + component, ok
}

// objectKey is the key of an object's file.
func objectKey(above, name string) (string, bool) {
	name, object := strings.CutSuffix(name, objectMark)
	component, ok := decode(name)
	return above + component, ok && object
}

// emptyName stands for an empty component, as in a//b.
const emptyName = "%"

// encode makes a name of a part of a component: one that is not empty, is neither . nor .., and differs from the name of
// every other part also where case makes no difference.
func encode(part string) string {
	if part == "" {
		return emptyName
	}
	dots := strings.Trim(part, ".") == ""
	var b strings.Builder
	for i := range len(part) {
		switch c := part[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && !dots:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

// decode is the reverse of encode. Not ok: encode makes no such name.
func decode(name string) (part string, ok bool) {
	if name == emptyName {
		return "", true
	}
	part, err := url.PathUnescape(name)
	return part, err == nil && part != "" && encode(part) == name
}
