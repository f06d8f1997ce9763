//go:build linux

// Package privs gives and takes the rights of a process: what protects the supervisor from the commands
// that it runs, and whose rights it uses for which work.
package privs
