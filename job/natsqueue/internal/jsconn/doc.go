// Package jsconn is a connection to a NATS server with JetStream: calls that are repeated until the server answers, and
// errors that say what is wrong and what to do about it. It knows streams, keys and messages, and nothing of jobs.
//
//	Dial ──► Conn ── Publish, CreateFirst, TryPublish ──────► a message on its stream
//	           │ ─── Ack, Nak, Progress ────────────────────► an answer about a message in hand
//	           ├──► Stream ── Last, Subjects, Read, Delete ─► what is stored
//	           └──► Bucket ── Get ──────────────────────────► the value of a key
//
// # Glossary
//
//   - Call: a request that is repeated until the server answers, or its context ends. Without a deadline it ends after
//     Patience. Every call knows the subject that it publishes to, since the server reports a denied subject apart from
//     the request: the request itself only times out.
//   - Try: a single request. It ends after TryTimeout.
//   - Transient: an error after which the same call may work a moment later.
//   - Silence: nobody answers on a subject. Either the streams were never made, or a stream has no leader at this moment.
//     A look at the first stream of the prefix tells the two apart; see cause.explain.
//
// # What it relies on, and what it does not
//
// A timeout does not mean "not done": a publish that timed out may be stored later. So every write that is repeated is
// harmless when it is stored twice, or expects a sequence. A read may be answered by a replica that is behind. A purge is
// never used: beside a running consumer of a work queue it can strand other messages.
package jsconn
