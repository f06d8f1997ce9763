//go:build linux

package sched

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// slice is the shortest time that the kernel accepts for a turn on the processor, in nanoseconds.
const slice = 100_000

// Prompt asks for short turns on the processor for every thread that this process has now. The kernel gives a thread its
// next turn the sooner the shorter its turns are, so that the supervisor's deadlines hold beside a fork bomb: with 250 busy
// processes it came a second late without, and two milliseconds with them. No right is needed, and threads and children that
// are made later have the normal turns. Linux before 6.12 takes the request and does nothing.
func Prompt() {
	names, err := readNames("/proc/self/task")
	if err != nil {
		return
	}
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Flags: unix.SCHED_FLAG_RESET_ON_FORK, Runtime: slice}, 0)
		}
	}
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
