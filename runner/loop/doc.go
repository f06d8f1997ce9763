// Package loop is the contract between the step loop of an attempt and what decides its steps.
//
//	          Turn                                    Decision
//	the loop ──────► Decider.Next ─► script, model, … ────────► the loop: check, execute, record ──► next Turn
//
// The loop alone owns limits, execution, recording and events. A Decider only answers. runner.Config.Decider makes one
// for each job; without it the job's own steps are a Script.
//
// # Glossary
//
//   - Decider: decides the next step: a script, a model, a recording that is played again.
//   - Turn: what a Decider knows when it is asked. Decision: its answer. Action: one step that it wants done.
//
// # Three kinds of failure
//
//   - A command that failed or timed out, and a decision that can't be used, are told to the Decider in its next Turn.
//   - Too many decisions in a row that can't be used are the verdict on the job: failed, for limit_failures.
//   - A box that is lost, and an error of Next, are failures of the infrastructure. No Decider is told of them; the job
//     is tried again, with a Decider of its own for each attempt.
package loop
