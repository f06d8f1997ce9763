// Package supervisor talks to the supervisor, the static program that is process
// 1 of a box (container/supervisor/box), over one byte stream in each direction.
// The program itself is embedded for every architecture it is built for, so that a plain go build
// of a clean clone gives a complete worker.
//
//	worker                                      box
//	Session ──Hello, Ping, Open, Data──► stdin  box ──socket──► box step ──fork──► the command and
//	        ◄──Ready, Pong, output, End── stdout    (one per running command,       all its descendants
//	                                                 a subreaper: nothing escapes it)
//
// # What an adapter must give the program
//
// It takes no arguments, except where it only empties a folder that a dead box left (WipeArgs). Everything it needs to know
// comes with Connect's Hello.
//
//	entrypoint    [BoxPath], command empty. The file is on a read-only mount (MountPath), mode 0555.
//	process 1     of its own pid namespace: no init before it, no shared pid namespace. (Config.Root says otherwise.)
//	user          0:0. The commands run as Config.User.
//	capabilities  drop ALL, add Capabilities (KILL, SETUID, SETGID; CHOWN for the workspace alone). It also works as an
//	              unprivileged user; then every command runs as that user, and Config.User must name it.
//	stdin         the worker's frames: a pipe or socket that ends when the worker dies (OpenStdin, StdinOnce).
//	stdout        the box's frames, nothing else. No TTY. Docker's stream headers are removed by the adapter.
//	stderr        a line of text if it can't start or ends in an odd way; else silent. Log it, or drop it.
//	environment   is given to every command under Config.Env, except HOME, PWD, OLDPWD, SHLVL, TERM. So it is the
//	              place for what the image says (PATH …), and nothing secret belongs there.
//	workspace     the folder Config.Workdir exists. If it and Config.Scratch belong to the supervisor's user they
//	              get a mode that the commands can use (0777, 01777), and it becomes Config.User's with all it
//	              holds; else they must have such a mode already.
//	/proc         is mounted: the trees of processes are found there.
//	pids          it takes about 10 threads, and 6 more per running command, and per spare step process (at most 2).
//	seccomp       openat2 and pidfd_open are used where they are allowed, and done without where not. prctl,
//	              setfsuid, setfsgid, setresuid, socketpair, sendmsg, recvmsg, renameat, utimensat must be allowed.
//
// Attach before the start, call Connect right after it (Hello must come within 20 s), and always read: Session does.
//
// # How it ends
//
// Whatever ends the box, every process in it is killed and the workspace is emptied before the program exits with
//
//	0   Stop, or SIGTERM
//	70  its stdin ended: the worker is gone
//	71  Config.Lifetime is over
//	72  no sign of the worker for Config.DeadMan
//	73  the worker broke the protocol
//	74  it could not start; stderr says why
//
// # Glossary
//
//   - Session: the worker's end of the connection. Box: the other end.
//   - Frame, Stream, window: see package wire. One stream is one command or one file operation.
//   - Tree: a command's leader (the process that was asked for) and all its descendants, wherever they hide.
//   - Leftovers: members of the tree that live although the leader has ended and the drain is over.
//   - Dead-man switch: the box ends by itself when its worker shows no sign of life.
package supervisor
