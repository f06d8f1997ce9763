// Package events sends what happens in an attempt to those who follow it.
//
//	Add, Output ─► budget ─► queue (bounded; the rest is dropped, and told of) ─► batches ─► Sink.Emit
//
// # Glossary
//
//   - Stream: the events of one attempt, numbered from 1 without a gap.
//   - Budget: what the events of the attempt may take in the queue. Of output beyond it the end of each step is sent.
//   - Gap: output that is left out; an event with its size comes before the next one.
//   - Printed: bytes of output. Missed: those of them that reach no reader.
package events
