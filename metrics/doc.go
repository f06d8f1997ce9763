// Package metrics shows what a worker does: it records counters and durations for
// Prometheus, and answers the liveness and readiness probes of the process.
//
//	runner ──Observer──► Recorder ──┐
//	queue  ──Depth─────► QueueCollector ──► prometheus.Registerer
//	       ──StreamUse─► RoomCollector ─────────► │
//	       ──OutboxUse─► OutboxCollector ───────► │
//	checks ────────────► Health ────┤              │
//	                                ▼              ▼
//	                     Handler: /readyz /livez /metrics ──► Serve, on loopback
//
// # Glossary
//
//   - Recorder: counts the calls that a worker makes to its observer. It satisfies
//     runner.Observer without importing it. Each worker has one Recorder.
//   - QueueCollector: asks the queue for its depth at each scrape.
//   - Depth: how many jobs of one priority wait in one queue, and how long.
//   - Loss: why bytes that a step printed do not reach where they should. The live view lacks them since the attempt's events
//     went over their limit (limit), they came faster than the queue took them (slow), the queue did not take them (queue),
//     or they did not arrive from the box (box). Result and store lack them since the step or the job went over its limit (limit), the worker has
//     no store (no_store), the store did not take the log (store), the worker's disk did not (disk), the step was tried
//     again (try), or they did not arrive from the box (box).
//   - Part: a stream of the queue by what it is for. Its room is what the server lets it have.
//   - End: what became of a result that the outbox of a worker kept: committed, late (another attempt was faster) or lost.
//   - Class: the budget that pays for a retry (job.Class). It is not a priority.
//   - Check: a function that tests one thing which a worker needs: NATS, the engine, the store, disk.
//   - Health: all checks together. A worker is ready if every check passes and it is
//     not draining.
//
// # Rules
//
// Every name begins with slipway_ and ends with its base unit. The values of most labels
// are closed lists: outcome, reason, class, priority, status, phase, direction, action, cause,
// result, loss, part, end. A value that is not on its list is counted as "other", so that no job, tenant,
// image or error text can add a series. The labels queue and check have free values: the
// operator chooses them, and the number of queues is bounded. A Recorder has the queues that its worker serves and "other"; a
// QueueCollector has those that hold jobs, too. A label has one meaning in
// all metrics. Every series of a closed list exists from the start with the value 0, so
// that rate() sees the first failure and a dashboard shows a zero instead of a hole.
package metrics
