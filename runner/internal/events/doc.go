// Package events sends what happens in an attempt to those who follow it.
//
//	Add, Output ─► queue (bounded; the rest is dropped, and told of) ─► batches ─► Sink.Emit
//
// # Glossary
//
//   - Stream: the events of one attempt, numbered from 1 without a gap.
//   - Printed: bytes of output. Missed: those of them that reach no reader.
package events
