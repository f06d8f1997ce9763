// Package local runs a job without a container: the supervisor is a child process
// of the worker, and the workspace a folder that is made for the job. It is for
// trying slipway out, and for its own tests.
//
// It gives no isolation. A job sees the worker's machine, its network and its files, as far as the
// user may; limits of a Spec (cpus, memory, pids, disk) and its network are not enforced.
// So New refuses unless Config.AllowLocal is set, which a person does with --allow-local.
//
//	Provider ──memfd, socketpair──► supervisor ──► commands      <Dir>/slipway-<name>-…/
//	    └── its end of the socketpair closes when the worker        ├── work   the workspace
//	        dies: the supervisor kills all, removes the folder      └── tmp    HOME, TMPDIR
//
// It gives the same commands, timeouts, tree kill, file API and dead-man switch as a real box, since the
// same program does them. If the worker is root, commands run as Spec.User (default 1000:1000); else as the
// worker's own user, and any other is refused. If worker and supervisor are both killed by SIGKILL the folder stays; it
// has a record with the box's name and labels, whose lock tells the next worker's reaper that nobody has it any more.
package local
