//go:build linux

// Package boxtest has what the tests of the supervisor's rooms share: marked processes, and the test's
// program in a role of its own.
//
// # Roles
//
// The supervisor starts its own program again (/proc/self/exe) for each step process. In a test that program is
// the test's. So a test package registers what its program does instead of testing:
//
//	func init() { boxtest.Role("reaper", func() { … }) }        the process that Start(t, "reaper") starts
package boxtest
