package job

import "slipway/internal/document"

// MaxErrors is how many mistakes of one job are reported.
const MaxErrors = document.MaxErrors

// FieldError is one mistake in a job:
//
//	Path         string // the field, such as steps[2].timeout or env["bad name"]; empty: the job as a whole
//	Line, Column int    // from 1, the column in characters; zero for a job that was built in code
//	Message      string // what is wrong and what would be right; a piece of the input in it is quoted and short
//
// Error writes it in one line. In(file) writes it as compilers do, behind the name of its file. Settings and policies
// report their mistakes by the same type.
type FieldError = document.FieldError

// Errors are the mistakes of a job, a []*FieldError: at least one, at most MaxErrors, in the order of the text. Error
// writes one a line, and errors.As reaches each of them.
type Errors = document.Errors
