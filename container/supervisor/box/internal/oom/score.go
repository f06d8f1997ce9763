//go:build linux

package oom

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// How much likelier than process 1 others are to be killed, in thousandths of the memory.
const (
	// stepScore is a step process's. Without it the kernel would take process 1, the largest of them, when a memory that is
	// full of files leaves nothing else to kill.
	stepScore = 200
	// commandScore is a command's, beyond its step process's. Without it the kernel prefers a step process to the many small
	// processes of a fork bomb, and how the command ended stays unknown.
	commandScore = 300
	maxScore     = 1000 // the kernel's bound
)

// Score changes the oom_score_adj of this process, and with it the one that its children inherit. The zero value changes nothing.
type Score struct {
	file        *os.File
	own, raised int
}

// OpenScore opens the score of process 1: what it forks after Raise are step processes.
func OpenScore() Score { return openScore(stepScore) }

// OpenStepScore opens the score of a step process: what it forks after Raise are commands.
func OpenStepScore() Score { return openScore(commandScore) }

// openScore opens the score of this process. Where that is not allowed it returns one that changes nothing.
func openScore(more int) Score {
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
	return newScore(f, own, more)
}

func newScore(f *os.File, own, more int) Score { return Score{f, own, min(own+more, maxScore)} }

// Raise makes what is forked from now on likelier to be killed than this process.
func (s Score) Raise() { s.set(s.raised) }

// Restore undoes Raise.
func (s Score) Restore() { s.set(s.own) }

// set ignores an error: where the change is not allowed, the kernel chooses as it does without.
func (s Score) set(score int) {
	if s.file != nil {
		_, _ = s.file.WriteAt([]byte(strconv.Itoa(score)), 0)
	}
}
