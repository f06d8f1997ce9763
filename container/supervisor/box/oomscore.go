//go:build linux

package main

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// commandScore is how much likelier than the supervisor a command is to be killed when memory
// is short, in thousandths of the memory. Without it the kernel prefers a step process to the
// many small ones of a fork bomb, and nobody learns how the command ended.
const commandScore = 300

// oomScore changes what this process's children inherit as oom_score_adj.
type oomScore struct {
	file *os.File
	own  int
}

func openOOMScore() oomScore {
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return oomScore{}
	}
	var buf [16]byte
	n, err := unix.Pread(int(f.Fd()), buf[:], 0)
	if err != nil {
		return oomScore{}
	}
	own, err := strconv.Atoi(string(bytes.TrimSpace(buf[:n])))
	if err != nil {
		return oomScore{}
	}
	return oomScore{f, own}
}

func (o oomScore) raise()   { o.set(min(o.own+commandScore, 1000)) }
func (o oomScore) restore() { o.set(o.own) }

// set does its best: where it may not, the kernel chooses as it always does.
func (o oomScore) set(score int) {
	if o.file != nil {
		_, _ = o.file.WriteAt([]byte(strconv.Itoa(score)), 0)
	}
}
