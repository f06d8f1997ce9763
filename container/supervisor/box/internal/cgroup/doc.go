//go:build linux

// Package cgroup reads what the kernel counts for the cgroup of the box: the processes that it killed for memory, and the
// forks that it refused because the box was at its limit of processes.
package cgroup
