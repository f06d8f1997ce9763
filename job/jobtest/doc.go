// Package jobtest holds what tests of queues need: an in-memory queue with the
// semantics of the real one, and the suite that every implementation of the
// contract in package job passes.
//
//	Run(t, factory) ──► Harness{Client, Join, Kill} ◄── Queue (in memory) · natsqueue
//
// # Glossary
//
//   - Twin: Queue, which keeps to the contract without a server. It does no I/O,
//     so it works inside a testing/synctest bubble.
//   - Kill: a worker dies as by kill -9. Its leases stay as they are, and are not extended any more.
//   - Zombie: the holder of such a lease, which wakes up and goes on as if nothing had happened.
package jobtest
