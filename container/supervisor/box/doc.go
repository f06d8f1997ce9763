//go:build linux

// Box is the supervisor: process 1 of a box, or the child of a worker that runs
// jobs without isolation. It runs commands, serves the workspace's files, and
// ends the box when its worker is gone. See package supervisor for what it
// must be given, and package wire for what it speaks.
//
//	box ── reads frames, owns timers, pipes and files
//	 ├── box step ── subreaper of one command at a time; reused while it has no children
//	 │    └── leader ─ … every descendant, also after setsid, double fork and nohup
//	 └── box step ── a spare one, so that the next command need not wait for it
//
// A step process tells its command's tree by /proc: whatever descends from it. It
// stops the tree before it kills it, so that a fork bomb can't outrun it, and
// reports only when the kernel says that it has no child left.
//
// The program is small: no fmt, no net, no encoding packages.
package main
