//go:build !unix

// Package procgroup ends a program together with everything that it started.
package procgroup

import "os/exec"

// Own does nothing here: only the program itself ends with its context.
func Own(*exec.Cmd) {}
