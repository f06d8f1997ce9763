package job

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxErrors is how many mistakes of one job are reported.
const MaxErrors = 20

// maxFound is how many mistakes are looked for. The search ends there, since a
// hostile job can hold a million of them.
const maxFound = 5 * MaxErrors

// FieldError is one mistake in a job.
type FieldError struct {
	// Path is the field, such as steps[2].timeout or env["bad name"]. Empty means
	// the job as a whole.
	Path string
	// Line and Column count from 1, the column in characters. Zero for a job built in code.
	Line, Column int
	// Message says what is wrong and what would be right. Whatever it repeats of the input is quoted and short.
	Message string

	// missing and unknown go together: a misspelled field is missing, too.
	missing, unknown bool
}

// Error writes position, path and message in one line.
func (e *FieldError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d, column %d: ", e.Line, e.Column)
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// In writes the mistake as compilers do, with the name of the file that it is in, so that editors find the place.
func (e *FieldError) In(file string) string {
	s := file + ":"
	if e.Line > 0 {
		s += fmt.Sprintf("%d:%d:", e.Line, e.Column)
	}
	if e.Path != "" {
		s += " " + e.Path + ":"
	}
	return s + " " + e.Message
}

// Errors are all the mistakes of a job that were found, at least one, at most
// MaxErrors, in the order of the text they were found in. Each is reached by
// errors.As too.
type Errors []*FieldError

// Error writes one mistake a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single mistakes.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// errorOrNil returns e as an error, in order and cut to MaxErrors.
func (e Errors) errorOrNil() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b *FieldError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(e) > MaxErrors {
		e = e[:MaxErrors:MaxErrors]
		e[MaxErrors-1].Message += " (there are more mistakes after this one)"
	}
	return e
}

// add appends a mistake, up to maxFound.
func (e *Errors) add(err *FieldError) {
	if len(*e) < maxFound {
		*e = append(*e, err)
	}
}

// merge adds the mistakes of found that are not mere consequences of those in e.
func (e Errors) merge(found Errors) Errors {
	merged := slices.Clone(e)
	for _, f := range found {
		if !slices.ContainsFunc(e, func(cause *FieldError) bool { return explains(cause, f) }) {
			merged = append(merged, f)
		}
	}
	return merged
}

// explains reports whether the mistake f may only be there because cause is:
// something at, in or around the same place could not be read.
func explains(cause, f *FieldError) bool {
	if within(f.Path, cause.Path) || within(cause.Path, f.Path) {
		return true
	}
	return f.missing && cause.unknown && parentPath(cause.Path) == parentPath(f.Path)
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

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// keyPath appends a key to a path. A key that is no plain name is quoted.
func keyPath(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// indexPath appends a position to a path.
func indexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// quote makes a piece of the input fit for a message: short, on one line, without anything that a terminal obeys.
func quote(s string) string {
	const most = 40
	if cut := []rune(s); len(s) > most && len(cut) > most {
		return fmt.Sprintf("%q…", string(cut[:most]))
	}
	return fmt.Sprintf("%q", s)
}
