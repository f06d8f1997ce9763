//go:build linux

// Package proctree finds and kills the processes below a process: its tree. The kernel has no call for
// that, so the package reads the table of all processes in /proc, stops the tree, and only then kills it.
//
//	Descendants ── what is below root now
//	Freeze      ── SIGSTOP until a look finds nothing that runs
//	Kill        ── Freeze, then SIGKILL        KillAs ── the same, for a tree that belongs to one user
//	Reap        ── collect what has ended
//
// A look at the table is not of a single moment: if a parent is reaped between the readings of its line and its
// child's, the child is missed. So Kill is repeated until nothing is left.
//
// A process that setsid, a double fork or nohup has taken away from its parent is still found: the
// processes of this program are subreapers (package privs), so that an orphan becomes their child.
package proctree
