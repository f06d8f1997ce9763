// Package natsqueue is the queue of package job on NATS JetStream. This package is the job protocol; the package
// internal/jsconn below it makes the calls to the server. Only these two import nats.go.
//
//	Submit ─► JOBS  J.<queue>.<priority>.<id>  work queue; the message is the job's token
//	   │        │ fetch one per slot
//	   │        ▼
//	   │      Consumer ─── claim: compare-and-set ──► KV jobs   <id>: the record; the only thing that decides
//	   │        │  heartbeat, commit, requeue ──────►
//	   │        ├──► RESULTS R.<queue>.<id>.<gen>     create-only copy of what the record decided
//	   │        ├──► DEAD    X.<queue>.<id>.<gen>     jobs that slipway gave up on
//	   │        ├──► EVENTS  E.<worker>.<id>.<gen>    progress and output; limited by age and bytes
//	   │        ├──► KV workers <name>                liveness, and what runs there; expires by itself
//	   │        └◄── C.<worker>                       cancels, pushed
//	   └─────► SCHED D.wait.<id>.<gen>.<n> ─ due ─► D.due.<queue>.<priority>.<id> ─ mover ─► JOBS
//
// Every subject, stream and bucket has the prefix of Config.Prefix.
//
// # Glossary
//
//   - Token: the message in JOBS that stands for one job waiting or running. It
//     holds the spec. A second token of one job is harmless: the record decides.
//   - Record: where the job stands. No record beside a token means: queued, never claimed.
//   - Claim: the compare-and-set that makes a worker the owner, with the next fence.
//   - Lane: the consumer of one priority of one queue.
//   - Decide: write a final state into the record. A commit decides, and so can a cancel, a claim and the janitor.
//   - Settle: what follows a decision: dead letter, result, acknowledgment. Each
//     can be repeated, and the worker that gets the token of a decided job repeats them.
//   - Mover: takes due jobs from SCHED to JOBS.
//   - Janitor: the one worker that repairs records which lost their token.
//
// # What the protocol relies on, and what it does not
//
// An acknowledgment proves nothing: JetStream accepts those of stale holders. A
// timeout does not mean "not done". A filtered purge of a work queue can strand
// other jobs, so the stream denies purges. A fetch is not canceled: a
// message on its way to a canceled fetch is lost until AckWait. MaxDeliver and
// BackOff are not used: attempts are counted in the record, one budget per class.
//
// crashes.md tells for each step of the protocol what a crash after it leaves, who notices, and within what time.
package natsqueue
