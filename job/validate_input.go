package job

import (
	"path"
	"strings"
	"unicode/utf8"

	"slipway/internal/document"
)

func (c *checker) inputs(inputs []Input) {
	if len(inputs) > MaxInputs {
		c.Fail("inputs", "%d files, more than %d: put them into one archive, or into the workspace", len(inputs), MaxInputs)
		return
	}
	files := make(map[string]string, len(inputs)) // path in the workspace → path in the job
	for i := range inputs {
		c.input(&inputs[i], document.IndexPath("inputs", i), files)
	}
	for i := range inputs {
		c.folders(inputs[i].Path, document.IndexPath("inputs", i)+".path", files)
	}
}

func (c *checker) input(in *Input, at string, files map[string]string) {
	c.filePath(in.Path, at+".path")
	if first, twice := files[in.Path]; twice {
		c.Fail(at+".path", "the same file as %s", first)
	} else if in.Path != "" {
		files[in.Path] = at
	}
	sources := map[string]bool{"content": in.Content != nil, "content_base64": len(in.ContentBase64) > 0, "key": in.Key != ""}
	c.exactlyOne(at, sources, []string{"content", "content_base64", "key"})
	c.content(in.Content, at)
	if in.Key != "" {
		c.failIf(at+".key", checkFile(in.Key))
	}
	switch {
	case in.Key != "" && in.SHA256 == "":
		c.Missing(at+".sha256", " with key: the object's digest in hex, as sha256sum prints it")
	case in.Key == "" && in.SHA256 != "":
		c.Fail(at+".sha256", "only with key")
	default:
		c.match(in.SHA256, at+".sha256", sha256RE, "a SHA-256 digest (64 characters of 0-9 and a-f)")
	}
	c.mode(in.Mode, at)
}

// folders refuses a file that would have to be the folder of another one.
func (c *checker) folders(file, at string, files map[string]string) {
	if checkFile(file) != "" {
		return
	}
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if other, isFile := files[dir]; isFile {
			c.Fail(at, "%s is a file already: see %s", document.Quote(dir), other)
		}
	}
}

func (c *checker) filePath(p, at string) {
	if p == "" {
		c.Missing(at, ": where in the workspace the file shall be")
		return
	}
	c.failIf(at, checkFile(p))
}

func (c *checker) content(s *string, at string) {
	if s != nil && !utf8.ValidString(*s) {
		c.Fail(at+".content", "not UTF-8: give bytes as content_base64")
	}
}

func (c *checker) mode(m Mode, at string) {
	if m > 0o777 {
		c.Fail(at+".mode", "must be at most 0777, not %04o", uint32(m))
	}
}

// exactlyOne checks that one of several fields is set.
func (c *checker) exactlyOne(at string, set map[string]bool, names []string) {
	var found []string
	for _, name := range names {
		if set[name] {
			found = append(found, name)
		}
	}
	c.oneOf(at, found, names)
}

func (c *checker) oneOf(at string, found, names []string) {
	last := len(names) - 1
	list := strings.Join(names[:last], ", ") + " or " + names[last]
	switch len(found) {
	case 0:
		c.Fail(at, "needs one of %s", list)
	case 1:
	default:
		c.Fail(document.KeyPath(at, found[1]), "can't be used beside %s: give exactly one of %s", found[0], list)
	}
}
