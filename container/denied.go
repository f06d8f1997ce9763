package container

import (
	"fmt"
	"strings"
)

// Denied is what a policy refused. It matches ErrDenied.
type Denied struct {
	// Field is the job's field that asked for too much.
	Field string
	// Key is the policy's key that would allow it.
	Key string
	// Detail says how much was asked for and allowed, where that is the point.
	Detail string
}

const notAllowed = "not allowed by this worker's policy"

// Error names the field and the key.
func (d *Denied) Error() string {
	return d.Field + ": " + notAllowed + " (key " + d.Key + ")" + d.detail()
}

func (d *Denied) detail() string {
	if d.Detail == "" {
		return ""
	}
	return ": " + d.Detail
}

// Is makes d match ErrDenied.
func (d *Denied) Is(target error) bool { return target == ErrDenied }

// Denials are all that a policy refused of one box, at least one. They match ErrDenied, and each is reached by
// errors.As too.
type Denials []*Denied

// Error names each field with its key, in one line.
func (ds Denials) Error() string {
	if len(ds) == 1 {
		return ds[0].Error()
	}
	parts := make([]string, len(ds))
	for i, d := range ds {
		parts[i] = fmt.Sprintf("%s (key %s)%s", d.Field, d.Key, d.detail())
	}
	return notAllowed + ": " + strings.Join(parts, "; ")
}

// Unwrap returns the single refusals.
func (ds Denials) Unwrap() []error {
	errs := make([]error, len(ds))
	for i, d := range ds {
		errs[i] = d
	}
	return errs
}
