// Package display prints a job for a person, or for a script: the events as they
// come, then the result.
//
//	job.Event, job.Result ──► Printer ─┬─► Human ──► text for a terminal or a pipe
//	                                   └─► JSON ──► one object a line
//
// A job's output, and every name that a job carries, is untrusted. Human prints it
// through package sanitize, so that no job can act on the terminal or imitate a line
// of slipway. JSON keeps the bytes: its encoding escapes them.
package display
