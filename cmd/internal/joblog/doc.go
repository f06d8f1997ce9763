// Package joblog finds what a job printed, also long after its end.
//
//	job.Client.Follow ─► events, while the queue keeps them ─┐
//	Store             ─► the log of a step                  ─┼─► Show ─► Only, Tail ─► Sink
//	job.Result        ─► head and tail of a step's output   ─┘
//
// Show prefers the events, which alone have times and tell stdout from stderr. A step of the last attempt whose events are
// not whole is restored from its log, or from the best of what is left. Whatever is missing after that is said, with the
// reason, and where it may still be had.
//
// # Glossary
//
//   - Whole: the events of a step from its start to its end, without a gap.
//   - Restored: made of the result and the log. Restored events have the number 0, and no time but that of the step.
//   - Sink: what gets the events in order, and remarks in words.
package joblog
