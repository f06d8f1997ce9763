// Package runner takes jobs from a queue and runs each in a box of its own. It
// is slipway's embedding API: make a Worker with New, give it a queue, a provider of boxes
// and a store, and call Run. It knows the contracts of job, container and sync, and none of
// their implementations.
//
//	Next ─► accept ─► pull_image ─► create ─► pull_workspace ─► steps ─► push_workspace ─► Commit
//	          │           │            │             │             │            │            │
//	          └───────────┴────────────┴──────┬──────┴─────────────┴────────────┴────────────┘
//	                                       verdict ─► decide ─► commit   remove box beside it
//	                                                         ├► requeue  remove box first, pay by class
//	                                                         ├► release  remove box first, at no cost
//	                                                         └► drop     remove box, say nothing
//
// # Glossary
//
//   - Worker: the slots that run attempts, and the reaper.
//   - Attempt: one execution of a job: one lease, one box, one verdict.
//   - Phase: a part of an attempt that is timed. Step: one action of the job.
//   - Policy: decides the next step. A script walks the job's own.
//   - Verdict: how an attempt ended, as an Outcome and a Reason. Budget: what decides
//     whether there is another attempt; each class of failure has its own.
//   - Teardown: what undoes an attempt. It is registered before the setup, runs once, in a
//     context of its own, and its errors are counted as leftovers.
//   - Reap: to remove what another worker, or an earlier life of this one, left.
//
// # Contexts
//
//   - fetchCtx ends with Run's: no job is taken any more.
//   - holdCtx of an attempt ends when the job is not ours any more, or the worker
//     really stops: lease lost, self-fenced, aborted, soft stop, killed. It does not end with Run's.
//   - workCtx, within holdCtx, also ends at the job's timeout and at a first cancel; always-steps
//     and the push outlive it.
//   - cleanupCtx is made fresh for each teardown.
//
// # Five clocks
//
// Every end says which clock it was:
//
//	step     Step.Timeout                 timed_out/step_timeout
//	job      Job.Timeout                  timed_out/job_timeout; then at most EndingTime for always-steps
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
