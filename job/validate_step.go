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
		c.Fail(at+"."+found[1], "can't be used beside %s: give exactly one of %s", found[0], list)
	}
}

func (c *checker) steps(steps []Step) {
	switch {
	case len(steps) == 0:
		c.Missing("steps", `: at least one, such as [{run: "make test"}]`)
	case len(steps) > MaxSteps:
		c.Fail("steps", "%d steps, more than %d", len(steps), MaxSteps)
		return
	}
	for i := range steps {
		c.step(&steps[i], document.IndexPath("steps", i))
	}
}

func (c *checker) step(s *Step, at string) {
	c.failIf(at+".name", checkName(s.Name))
	c.oneOf(at, s.kinds(), stepKinds())
	c.action(s, at)
	c.processOnly(s, at)
	c.env(s.Env, at+".env")
	if s.Dir != "" {
		c.failIf(at+".dir", checkDir(s.Dir))
	}
	if s.User != "" {
		c.failIf(at+".user", checkUser(s.User))
	}
	if s.Stdin != nil && !utf8.ValidString(*s.Stdin) {
		c.Fail(at+".stdin", "not UTF-8: give bytes as an input file with content_base64")
	}
	c.duration(s.Timeout, at+".timeout", MinTimeout, MaxTimeout)
	if g := s.Grace; g != nil && (*g < 0 || g.Std() > MaxGrace) {
		c.Fail(at+".grace", "must be 0s to %s, not %s", short(MaxGrace), *g)
	}
	enum(c, s.If, at+".if", conditions())
	c.retry(&s.Retry, at+".retry")
}

// action checks the value that says what the step does.
func (c *checker) action(s *Step, at string) {
	if s.Run != "" {
		c.script(s.Run, at+".run")
	}
	c.argv(s.Command, at+".command", "with a larger one use stdin or an input file")
	c.argv(s.Shell, at+".shell", "put it into an input file")
	if w := s.Write; w != nil {
		c.write(w, at+".write")
	}
	if s.Read != "" {
		c.failIf(at+".read", checkFile(s.Read))
	}
	if s.Delete != "" {
		c.failIf(at+".delete", checkFile(s.Delete))
	}
	if s.List != "" {
		c.failIf(at+".list", checkPath(s.List))
	}
}

func (c *checker) script(script, at string) {
	switch {
	case strings.TrimSpace(script) == "":
		c.Fail(at, "must not be blank")
	case len(script) > MaxCommandBytes:
		c.Fail(at, "%d bytes, more than %d: put the script into an input file, or give it on stdin", len(script), MaxCommandBytes)
	default:
		c.failIf(at, checkText(script))
	}
}

func (c *checker) argv(args []string, at, hint string) {
	total := 0
	for i, arg := range args {
		total += len(arg) + 1 // as the kernel counts: a zero byte ends each
		if i == 0 && arg == "" {
			c.Fail(document.IndexPath(at, i), "the program must not be empty")
		}
		c.failIf(document.IndexPath(at, i), checkText(arg))
	}
	if total > MaxCommandBytes {
		c.Fail(at, "%d bytes, more than %d: %s", total, MaxCommandBytes, hint)
	}
}

func (c *checker) write(w *WriteFile, at string) {
	c.filePath(w.Path, at+".path")
	sources := map[string]bool{"content": w.Content != nil, "content_base64": len(w.ContentBase64) > 0}
	c.exactlyOne(at, sources, []string{"content", "content_base64"})
	c.content(w.Content, at)
	c.mode(w.Mode, at)
}

// processOnly refuses fields of a process in a step that starts none. Such a step works on files, as the job's user,
// and would ignore them.
func (c *checker) processOnly(s *Step, at string) {
	if len(s.kinds()) == 0 {
		return
	}
	if len(s.Shell) > 0 && s.Run == "" {
		c.Fail(at+".shell", "only with run")
	}
	if s.isProcess() {
		return
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"dir", s.Dir != ""},
		{"env", len(s.Env) > 0},
		{"user", s.User != ""},
		{"stdin", s.Stdin != nil},
		{"grace", s.Grace != nil},
	} {
		if f.set {
			c.Fail(at+"."+f.name, "only with run or command")
		}
	}
}
