// Package job holds the words that every other part of slipway speaks: what a
// producer asks for, what came of it, and how a queue hands a job to a worker. It imports the standard library
// and slipway's own internal leaves only.
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
//   - FieldError: one mistake in a job, with the field's path and its place.
//
// # How a job is written
//
// JSON on the wire (Decode), YAML or JSON in files (job/jobyaml). Both are read by package internal/document, as
// settings, policies and states are, and checked by the rules of Validate. So both give the same messages:
//
//	JSON ─┐
//	YAML ─┴─► Decode ──► Job ──Encode──► JSON
//	             │
//	             └─ Errors: line 7, column 14: steps[2].timeout: a duration needs a unit: …
//
// A field is left out or has a value. Decode refuses null. It refuses a zero where zero means the default: a timeout of
// 0s could be meant as no timeout or as the default. It refuses the empty value of a field with the tag spec:"filled".
// And it refuses, by name, the fields that the format has and this version does not implement.
//
// Three clocks must not be confused: timed_out is the clock of a step or of the job, lease_lost that of the queue,
// drained that of the worker. Likewise failed is the job's own command, and errored is slipway's machinery.
package job
