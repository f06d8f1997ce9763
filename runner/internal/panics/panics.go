// Package panics turns a panic into an error, where one part of an attempt must not take the worker with it.
package panics

import "fmt"

// Error is a panic that was caught: a defect.
type Error struct{ Value any }

// Error shows what was panicked with.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Catch calls fn, and returns its error. If it panics the error is an *Error.
func Catch(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{p}
		}
	}()
	return fn()
}
