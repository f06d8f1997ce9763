//go:build linux

// Package oom is about the kernel's killer of processes when memory is short: whom it takes (Score), and
// how often it has taken one (Counter).
package oom
