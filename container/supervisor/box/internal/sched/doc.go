//go:build linux

// Package sched asks the kernel to run the supervisor soon after it wakes, however many processes of a command want the
// processor.
package sched
