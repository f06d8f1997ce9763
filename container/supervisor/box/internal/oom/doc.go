//go:build linux

// Package oom says whom the kernel takes when memory is short. Of the processes of a box it takes a command's first, then
// a step process, and process 1 last: the box survives what its commands do to its memory.
package oom
