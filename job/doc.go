// Package job holds the words that every other part of slipway speaks: what a
// producer asks for, what came of it, and how a queue hands it from one to the
// other. It imports the standard library only.
//
//	producer                        queue                             worker
//	   │  Job (immutable spec)        │                                 │
//	   ├──── Submit ─────────────────►│                                 │
//	   │                              ├──── Lease: Delivery, Attempt, ──►│
//	   │                              │     Fence                        │ runs Steps
//	   │                              │◄─── Extend · Emit(Event) ────────┤
//	   │◄─── Follow(Event) ───────────┤                                 │
//	   │                              │◄─── Commit(Result) ──────────────┤ decides, once
//	   │◄─── Result ──────────────────┤                                 │
//
// # Glossary
//
//   - Job: the specification, written by the producer, never changed.
//
//   - Delivery: the queue hands the job over; may happen more than once.
//
//   - Attempt: one execution, numbered from 1.
//
//   - Step: one action of a job: a command, or one of read, write, delete, list.
//
//   - Lease: the right to work on a job. It is extended, or lost.
//
//   - Fence: a number that grows with each claim of a job. A holder with an
//     older fence can publish nothing.
//
//   - Outcome and Reason: two closed lists that say how a job ended and why.
//
//   - Generation: a dead job that is put back into the queue gets the next one.
//
//   - Node: a value of a job's text with its place, the same for JSON and YAML.
//
//   - FieldError: one mistake in a job, with the field's path and its place.
//
// # How a job is written
//
// JSON on the wire (Decode), YAML or JSON in files (job/jobyaml). Both are parsed into
// Nodes; DecodeNode makes a Job of them and runs Validate, so both give the same messages:
//
//	JSON ──ParseJSON────► Node ─┐
//	YAML ──jobyaml.Parse► Node ─┴─DecodeNode──► Job ──Encode──► JSON
//	                                  │
//	                                  └─ Errors: line 7, column 14: steps[2].timeout: a duration needs a unit: …
//
// A field is left out or has a value. Refused are null, a zero where zero means
// the default (would a timeout of 0s be none, or the default?), the empty value of a field
// with the tag spec:"filled", and, by name, the fields that the format has and this
// version does not implement.
//
// failed (the job's own command) is not errored (our machinery); timed_out (a
// step's or the job's clock) is not lease_lost (the queue's clock), and neither
// is drained (the worker's clock).
package job
