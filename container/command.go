package container

import (
	"time"
)

// Command is one process tree to run in a box.
type Command struct {
	// Args is the program and its arguments. A program without a slash is looked up in the command's PATH. Required.
	Args []string
	// Dir is the working directory, absolute or relative to the workspace. Empty means the workspace.
	Dir string
	// Env is added to the box's.
	Env map[string]string
	// User overrides the box's.
	User *User
	// Stdin is given to the command, followed by end of file.
	Stdin []byte
	// Timeout bounds the command. Zero means no bound but ctx.
	Timeout time.Duration
	// Grace is the time between TERM and KILL at a timeout or cancel. Zero kills at once.
	Grace time.Duration
	// Output is called with each piece of output, in order, one call after the other, and not after Exec has
	// returned. It must not block for long, since a command whose output nobody reads stands still, and must not keep the
	// slice. Nil throws the output away.
	Output func(Stream, []byte)
}

// Stream tells the two outputs of a command apart.
type Stream byte

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// String returns "stdout" or "stderr".
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Exit is how a command ended. It is only ever made from the supervisor's own
// report: a stream that merely ended proves nothing.
type Exit struct {
	// Code is the command's exit code, or 128 + the number of the signal that ended
	// it. 127: the program was not found. 126: it could not be executed.
	Code int
	// Signal names the signal that ended the leader, such as "SIGKILL".
	Signal string
	// Error says why the program could not be started, with Code 126 or 127.
	Error string
	// TimedOut: Command.Timeout ran out.
	TimedOut bool
	// Canceled: the context of Exec ended.
	Canceled bool
	// OOM: the kernel killed a process of the box for memory while the command ran.
	OOM bool
	// Pids: the kernel refused a process or thread while the command ran, since the box was at its limit of them.
	Pids bool
	// Unwatched: the command ended the process that watches over it, as one can that runs as root, or with local as the
	// worker's own user. All of it was then killed.
	Unwatched bool
	// CPU is the user and system time of the whole process tree.
	CPU time.Duration
	// MaxRSS is the largest resident size of a process of the tree, in bytes.
	MaxRSS int64
	// Leftovers counts the processes that the leader left behind; they were killed. Their output is taken as long as it
	// comes, for ten seconds and until Timeout at most, and they are ended half a second after the last of it.
	Leftovers int
	// Cut: the leftovers were killed while more output could come.
	Cut bool
	// Duration from start to the end of the last process, on the box's monotonic clock.
	Duration time.Duration
	// Output is how many bytes the command printed.
	Output int64
}

// Success reports whether the command did what it should.
func (e Exit) Success() bool { return e.Code == 0 && !e.TimedOut && !e.Canceled }
