// Package runner takes jobs from a queue and runs each in a box of its own. It is slipway's embedding API: make a Worker
// with New, give it a queue, a provider of boxes and a store, and call Run. It knows the contracts of job, container and
// sync, and none of their implementations.
//
//	Next ─► accept ─► pull_image ─► create ─► pull_workspace ─► steps ─► push_workspace ─► Commit
//	          │           │            │             │             │            │            │
//	          └───────────┴────────────┴──────┬──────┴─────────────┴────────────┴────────────┘
//	                                       verdict ─► decide ─► commit   remove box beside it
//	                                                         ├► requeue  remove box first, pay by class
//	                                                         ├► release  remove box first, at no cost
//	                                                         └► drop     remove box, say nothing
//
// # Rooms
//
// An attempt is told on one screen, in attempt.go. What it needs lies in packages that take parameters, never the attempt:
//
//	attempt ─► hold                 the lease, and why it ended
//	        ─► internal/box         the life of the box, which could outlive an attempt
//	        ─► internal/workspace   the files: store ◄─► box
//	        ─► internal/steps       the step loop ─► loop.Decider, which decides the steps
//	        ─► internal/events      the news of all of them
//
// # Glossary
//
//   - Worker: the slots that run attempts, and the reaper.
//   - Attempt: one execution of a job: one lease, one box, one verdict.
//   - Hold: this worker's right to go on with a job. Lease: the queue's side of it.
//   - Phase: a part of an attempt that is timed. Step: one action of the job.
//   - Decider: decides the next step. The default is a script, which walks the job's own. Policy: what jobs may ask for.
//   - Verdict: how an attempt ended, as an Outcome and a Reason. Budget: what decides
//     whether there is another attempt; each class of failure has its own.
//   - Teardown: the removal of the box. It is registered before the box is made, runs once, in a context of its own, and
//     its failure is counted as a leftover.
//   - Reap: to remove what another worker, or an earlier life of this one, left; a failure of that is a leftover, too.
//
// # Contexts
//
//   - fetchCtx ends with Run's: no job is taken any more.
//   - hold.ctx of an attempt ends when the job is not ours any more, or the worker
//     really stops: lease lost, self-fenced, aborted, soft stop, killed. It does not end with Run's.
//   - hold.work, within hold.ctx, also ends at the job's timeout and at a first cancel; always-steps
//     and the push outlive it.
//   - A context for cleanup is made fresh for each removal.
//
// # Five clocks
//
// Every end says which clock it was:
//
//	step     Step.Timeout                 timed_out/step_timeout
//	job      Job.Timeout                  timed_out/job_timeout; then at most five minutes for always-steps
//	lease    Timing.Lease                 nothing is published; another worker runs the job
//	stop     Config.SoftStop              the job goes back at no cost (reason drained)
//	cleanup  Config.CleanupTimeout        a leftover is counted; the dead-man switch and the reaper remove it
//
// # Stopping
//
// When Run's context ends the worker takes nothing new, and attempts go on for
// Config.SoftStop. Then running commands get TERM and at most ten seconds, boxes are
// removed, and the jobs given back. Worker.Kill does the last part at once.
package runner
