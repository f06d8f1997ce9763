//go:build linux

package oom

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// commandScore is how much likelier a command is to be killed than the supervisor, in thousandths of the
// memory. Without it the kernel prefers a step process to the many small processes of a fork bomb, and how
// the command ended stays unknown.
const commandScore = 300

// Score changes the oom_score_adj that children of this process inherit. The zero value changes nothing.
type Score struct {
	file *os.File
	own  int
}

// OpenScore opens this process's own score. Where that is not allowed it returns one that changes nothing.
func OpenScore() Score {
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return Score{}
	}
	var buf [16]byte
	n, err := unix.Pread(int(f.Fd()), buf[:], 0)
	if err != nil {
		return Score{}
	}
	own, err := strconv.Atoi(string(bytes.TrimSpace(buf[:n])))
	if err != nil {
		return Score{}
	}
	return Score{f, own}
}

// Raise makes what is forked from now on likelier to be killed than this process.
func (s Score) Raise() { s.set(min(s.own+commandScore, 1000)) }

// Restore undoes Raise.
func (s Score) Restore() { s.set(s.own) }

// set ignores an error: where the change is not allowed, the kernel chooses as it does without.
func (s Score) set(score int) {
	if s.file != nil {
		_, _ = s.file.WriteAt([]byte(strconv.Itoa(score)), 0)
	}
}
