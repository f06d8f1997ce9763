// Package verdict says how an attempt ended: it turns errors, and the causes that end contexts, into the closed lists of
// package job.
//
//	error of a phase ──► Judge ──┐
//	                             ├──► Verdict ──► the job's result, or another attempt
//	cause of a context ─► Stopped┘
//
// # Glossary
//
//   - Verdict: an Outcome, a Reason and a message.
//   - Cause: why a context ended: one of the clocks, or one of the people that can stop a job.
//   - Fault: an error that knows its reason. Timeout: a clock that ran out.
package verdict
