// Package wire is the language that a worker and the supervisor in a box speak
// over one byte stream in each direction. Both ends use this package; it imports the standard library only.
//
//	frame = type (1) · stream id (4, big endian) · length (4) · payload        MaxPayload bounds it
//
//	worker                                box
//	Hello ──────────────────────────────► first frame; carries the protocol's name and version, and settings
//	      ◄────────────────────────────── Ready
//	Ping ───────────────────────────────► every quarter of the dead-man time
//	      ◄────────────────────────────── Pong
//	Open id kind params ────────────────► begins a stream: a command or a file operation
//	Data id · EOF id ───────────────────► what the stream reads: stdin, contents
//	      ◄─ Data, Stdout, Stderr id ──── what it prints or answers
//	Window id n ◄───────────────────────► n more units may be sent
//	Cancel id ──────────────────────────►
//	      ◄──────────────────── End id ── its result; the last frame of the stream
//	Stop grace ─────────────────────────►
//	      ◄──────────────────────── Bye ─ why the box ends; the last frame of all
//
// # Flow control
//
// Each stream may have Window units under way in each direction; a data frame of n bytes
// costs n + frameCost units, so that many tiny frames can't fill the memory either. The receiver returns
// units when its reader has taken the data. The loop that reads frames therefore never waits for
// a reader: a slow one stops its own stream only, and memory holds at most Window per stream.
// A peer that sends more than it may breaks the protocol, which ends the box.
package wire
