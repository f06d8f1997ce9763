package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxErrors is how many mistakes of one document are reported.
const MaxErrors = 20

// maxFound is how many mistakes are looked for. The search ends there, since a hostile document can hold a
// million of them.
const maxFound = 5 * MaxErrors

// FieldError is one mistake in a document.
type FieldError struct {
	// Path is the field, such as steps[2].timeout or env["bad name"]. Empty means the document as a whole.
	Path string
	// Line and Column count from 1, the column in characters. Zero for a value that was built in code.
	Line, Column int
	// Message says what is wrong and what would be right. A piece of the input in it is quoted and short.
	Message string

	// missing and unknown go together: a field that is misspelled is missing, too.
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

// In writes the mistake as compilers do, behind the name of its file, so that editors find the place.
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

// Errors are the mistakes of a document: at least one, at most MaxErrors, in the order of the text. errors.As
// reaches each of them, too.
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

// Mistakes collects what is wrong with a document. The zero value holds no mistake.
type Mistakes struct{ found Errors }

// Fail adds a mistake at path.
func (m *Mistakes) Fail(path, format string, args ...any) {
	m.Add(&FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
}

// FailAt adds a mistake at path, and at the place of n in the text.
func (m *Mistakes) FailAt(n *Node, path, format string, args ...any) {
	m.Add(&FieldError{Path: path, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

// Missing adds that a required field is not there. Err leaves the mistake out if a misspelled field is beside it.
func (m *Mistakes) Missing(path, hint string) {
	m.Add(&FieldError{Path: path, Message: "required" + hint, missing: true})
}

// Found returns what was added so far.
func (m *Mistakes) Found() Errors { return m.found }

// Err returns the mistakes in the order of the text, cut to MaxErrors, as Errors; nil if there is no mistake.
func (m *Mistakes) Err() error {
	e := m.found
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

// full reports that enough mistakes were found.
func (m *Mistakes) full() bool { return len(m.found) >= maxFound }

// Add adds a mistake that another reader found.
func (m *Mistakes) Add(err *FieldError) {
	if !m.full() {
		m.found = append(m.found, err)
	}
}

// merge adds the mistakes of later that are not mere consequences of those in m.
func (m *Mistakes) merge(later Errors) {
	causes := m.found
	for _, f := range later {
		if !slices.ContainsFunc(causes, func(cause *FieldError) bool { return explains(cause, f) }) {
			m.found = append(m.found, f)
		}
	}
}

// explains reports whether the mistake f may only be there because cause is: something at, in or around the same
// place could not be read.
func explains(cause, f *FieldError) bool {
	if within(f.Path, cause.Path) || within(cause.Path, f.Path) {
		return true
	}
	return f.missing && cause.unknown && parentPath(cause.Path) == parentPath(f.Path)
}
