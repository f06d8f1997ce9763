// Package steps is the step loop of an attempt: it asks a loop.Decider, does in the box what it says, and records what
// came of it. It knows the box, the events and the store that it is given, and nothing of the attempt around it.
//
//	Run ─► Decider.Next ─► act (a step, as often as its retry says) ─► try (once) ─► exec, or a file action
//	                        │                                           │
//	                        └─► record ─► Results                       └─► output ─► excerpts, log, events
//
// # Glossary
//
//   - Executor: all of this for one attempt.
//   - Try: one execution of a step. The result of a step is that of its last try.
//   - Excerpt: head and tail of a try's output, for the job's result. Observation: the same for the Decider, in a size of its own.
//   - Spool: the beginning of a try's output, in a temporary file, until it is stored as the step's log.
//   - Record: the results of the steps. It keeps all of a script, and head and tail of what has no end known before.
package steps
