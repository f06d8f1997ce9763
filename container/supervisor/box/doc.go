//go:build linux

// Box is the supervisor: process 1 of a box, or the child of a worker that runs
// jobs without isolation. It runs commands, serves the workspace's files, and
// ends the box when its worker is gone. See package supervisor for what it
// must be given, and package wire for the protocol.
//
//	box ── reads frames, owns timers, pipes and files
//	 ├── box step ── subreaper of one command at a time; reused while it has no children
//	 │    └── leader ─ … every descendant, also after setsid, double fork and nohup
//	 └── box step ── a spare one, so that the next command need not wait for it
//
// # Rooms
//
//	main       the life of process 1: box.go greets and serves, life.go says where the box stands,
//	           watchdog.go and end.go end it, exec.go and pipes.go run a command
//	step       the step process, and the box's pool of them
//	proctree   finding, freezing and killing a tree of processes
//	workspace  the file operations, and the wipe
//	oom        whom the kernel kills for memory
//	cgroup     what the kernel counts: kills for memory, refused forks
//	sched      when the kernel lets the supervisor run
//	privs      whose rights are used for which work
//
// A step process finds its command's tree in /proc: whatever descends from it. It stops the tree before it
// kills it, so that a fork bomb can't outrun it, and reports only when the kernel says that it has no child
// left.
//
// The program is small: it imports neither fmt nor net nor encoding packages, except through package wire.
package main
