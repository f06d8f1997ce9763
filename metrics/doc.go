// Package metrics shows what a worker does: counters and clocks for Prometheus,
// and two answers for whoever supervises the process.
//
//	runner ──Observer──► Recorder ──┐
//	queue  ──Depth─────► QueueCollector ──► prometheus.Registerer
//	checks ────────────► Health ────┤              │
//	                                ▼              ▼
//	                     Handler: /readyz /livez /metrics ──► Serve, on loopback
//
// # Glossary
//
//   - Recorder: turns what a worker tells its observer into metrics. It
//     satisfies runner.Observer without importing it. One Recorder for each worker.
//   - QueueCollector: asks the queue for its depth when somebody scrapes.
//   - Check: one thing that a worker can't do without: NATS, the engine, the store, disk.
//   - Health: the checks together. Ready means that all of them pass and that the
//     worker is not draining.
//
// # Rules
//
// Every name begins with slipway_ and ends with its base unit. A label is a word
// of a closed list: outcome, reason, class, priority, status, phase, direction, action. A
// word that is not on its list is counted as "other", so that no job, tenant,
// image or error text can add a series. The two labels that are free, queue and check,
// come from the operator, and the number of queues is bounded. Every
// series of a closed list exists from the start with the value 0: rate() sees
// the first failure, and a dashboard shows a zero, not a hole.
package metrics
