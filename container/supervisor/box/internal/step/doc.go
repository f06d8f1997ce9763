//go:build linux

// Package step runs commands, one at a time, in a process of its own: the step process, a child of the
// box. As a subreaper it is the ancestor of everything that its command starts, whatever that does.
//
//	box (Pool, Proc) ──socket: Open with 3 descriptors, Stop, Cancel, EOF──► step process (Run) ──fork──► leader ─ …
//	                 ◄──── EOF: the leader has ended; End: the command's exit ─────
//
// # States of a command
//
//	idle      no command
//	running   from Open on. A timeout or a cancel leads to terming, without a grace to slaying.
//	draining  The leader has ended. Its descendants may go on while they print (the box says when they have stopped),
//	          for DrainTime at least, until DrainLimit or the timeout at most. Then: terming.
//	terming   TERM was sent. When the grace is over: slaying.
//	slaying   KILL was sent, and is sent again until nothing is left.
//
// In every state the command is over when its leader has ended and no child is left. Then its End is sent.
//
// # Glossary
//
//   - Leader: the process that was asked for. Tree: the leader and all its descendants.
//   - Leftovers: members of the tree that live although the leader has ended and the drain is over.
//   - Alone: the box is process 1, so that every process of the kernel's table is the box's.
package step
