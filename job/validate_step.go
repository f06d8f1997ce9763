package job

import (
	"strings"
	"unicode/utf8"

	"slipway/internal/document"
)

func (c *checker) steps(steps []Step) {
	switch {
	case len(steps) == 0:
		c.Missing("steps", `: at least one, such as [{run: "make test"}]`)
	case len(steps) > MaxSteps:
		c.Fail("steps", "%d steps, more than %d", len(steps), MaxSteps)
		return
	}
	for i := range steps {
		step := stepChecker{c, &steps[i], document.IndexPath("steps", i)}
		step.check()
	}
}

// Validate checks a step that stands alone, by the rules of a job's steps. Its error is Errors, with the path of every
// wrong field within the step.
func (s *Step) Validate() error {
	var m document.Mistakes
	step := stepChecker{&checker{&m}, s, ""}
	step.check()
	return m.Err()
}

// stepChecker holds the rules of one step.
type stepChecker struct {
	*checker
	s  *Step
	at string // the step's path, empty if it stands alone
}

// field is the path of a field of the step.
func (c *stepChecker) field(name string) string {
	if c.at == "" {
		return name
	}
	return c.at + "." + name
}

func (c *stepChecker) check() {
	s := c.s
	c.failIf(c.field("name"), checkName(s.Name))
	c.oneOf(c.at, s.kinds(), stepKinds())
	c.action()
	c.processOnly()
	c.env(s.Env, c.field("env"))
	if s.Dir != "" {
		c.failIf(c.field("dir"), checkDir(s.Dir))
	}
	if s.User != "" {
		c.failIf(c.field("user"), checkUser(s.User))
	}
	if s.Stdin != nil && !utf8.ValidString(*s.Stdin) {
		c.Fail(c.field("stdin"), "not UTF-8: give bytes as an input file with content_base64")
	}
	c.duration(s.Timeout, c.field("timeout"), MinTimeout, MaxTimeout)
	if g := s.Grace; g != nil && (*g < 0 || g.Std() > MaxGrace) {
		c.Fail(c.field("grace"), "must be 0s to %s, not %s", short(MaxGrace), *g)
	}
	enum(c.checker, s.If, c.field("if"), conditions())
	c.retry(&s.Retry, c.field("retry"))
}

// action checks the value that says what the step does.
func (c *stepChecker) action() {
	s := c.s
	if s.Run != "" {
		c.script(s.Run, c.field("run"))
	}
	c.argv(s.Command, c.field("command"), "with a larger one use stdin or an input file")
	c.argv(s.Shell, c.field("shell"), "put it into an input file")
	if w := s.Write; w != nil {
		c.write(w, c.field("write"))
	}
	if s.Read != "" {
		c.failIf(c.field("read"), checkFile(s.Read))
	}
	if s.Delete != "" {
		c.failIf(c.field("delete"), checkFile(s.Delete))
	}
	if s.List != "" {
		c.failIf(c.field("list"), checkPath(s.List))
	}
}

func (c *stepChecker) script(script, at string) {
	switch {
	case strings.TrimSpace(script) == "":
		c.Fail(at, "must not be blank")
	case len(script) > MaxCommandBytes:
		c.Fail(at, "%d bytes, more than %d: put the script into an input file, or give it on stdin", len(script), MaxCommandBytes)
	default:
		c.failIf(at, checkText(script))
	}
}

func (c *stepChecker) argv(args []string, at, hint string) {
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

func (c *stepChecker) write(w *WriteFile, at string) {
	c.filePath(w.Path, at+".path")
	sources := map[string]bool{"content": w.Content != nil, "content_base64": len(w.ContentBase64) > 0}
	c.exactlyOne(at, sources, []string{"content", "content_base64"})
	c.content(w.Content, at)
	c.mode(w.Mode, at)
}

// processOnly refuses fields of a process in a step that starts none. Such a step works on files, as the job's user,
// and would ignore them.
func (c *stepChecker) processOnly() {
	s := c.s
	if len(s.kinds()) == 0 {
		return
	}
	if len(s.Shell) > 0 && s.Run == "" {
		c.Fail(c.field("shell"), "only with run")
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
			c.Fail(c.field(f.name), "only with run or command")
		}
	}
}
