// Package natsqueue is the queue of package job on NATS JetStream. It is the only
// importer of nats.go.
//
//	Submit ─► JOBS  J.<queue>.<class>.<id>   work queue; the message is the job's token
//	   │        │ fetch one per slot
//	   │        ▼
//	   │      Consumer ─── claim: compare-and-set ──► KV jobs   <id>: the record; the only thing that decides
//	   │        │  heartbeat, commit, requeue ──────►
//	   │        ├──► RESULTS R.<queue>.<id>.<gen>     create-only copy of what the record decided
//	   │        ├──► DEAD    X.<queue>.<id>.<gen>     jobs that slipway gave up on
//	   │        ├──► EVENTS  E.<worker>.<id>.<gen>    progress and output; limited by age and bytes
//	   │        ├──► KV workers <name>                liveness, and what runs there; expires by itself
//	   │        └◄── C.<worker>                       cancels, pushed
//	   └─────► SCHED D.wait.<id>.<gen>.<n> ─ due ─► D.due.<queue>.<class>.<id> ─ mover ─► JOBS
//
// Every subject, stream and bucket has the prefix of Config.Prefix.
//
// # Glossary
//
//   - Token: the message in JOBS that stands for one job waiting or running. It
//     holds the spec. Two tokens of one job do no harm: the record decides.
//   - Record: where the job stands. No record beside a token means: queued, never claimed.
//   - Claim: the compare-and-set that makes a worker the owner, with the next fence.
//   - Lane: the consumer of one class of one queue.
//   - Settle: what follows a decision: dead letter, result, acknowledgment. Each
//     can be repeated, so whoever meets the token of a decided job does it again.
//   - Mover: takes what is due from SCHED to JOBS.
//   - Janitor: the one worker that looks after records which lost their token.
//
// # What the protocol relies on, and what it does not
//
// An acknowledgment proves nothing: JetStream accepts those of stale holders. A
// timeout does not mean "not done". A filtered purge of a work queue can strand
// other jobs, so the stream denies purges. A fetch is not canceled, since a
// message on its way to a canceled one is lost until AckWait. MaxDeliver and
// BackOff are not used: attempts are counted in the record, one budget per class.
package natsqueue
