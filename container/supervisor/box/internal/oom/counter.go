//go:build linux

package oom

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Counter reads how many processes of this process's cgroup the kernel has killed for memory.
type Counter struct{ fd int }

// OpenCounter finds the counter. In a box with a cgroup namespace the cgroup's own files are at the root
// of the mount; without one they are where /proc/self/cgroup says. Without a readable counter it returns one
// that stays at 0.
func OpenCounter() Counter {
	paths := []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}
	if b, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		paths = append(cgroupFiles(b), paths...)
	}
	return openFirst(paths)
}

func openFirst(paths []string) Counter {
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		c := Counter{fd}
		if _, ok := c.read(); ok {
			return c
		}
		_ = unix.Close(fd)
	}
	return Counter{-1}
}

// cgroupFiles names the counter's file for each line of /proc/self/cgroup that may have one.
func cgroupFiles(table []byte) []string {
	var paths []string
	for line := range bytes.Lines(table) {
		f := bytes.SplitN(bytes.TrimSpace(line), []byte(":"), 3)
		if len(f) != 3 || string(f[2]) == "/" {
			continue
		}
		if len(f[1]) == 0 {
			paths = append(paths, "/sys/fs/cgroup"+string(f[2])+"/memory.events")
		}
		for _, controller := range bytes.Split(f[1], []byte(",")) {
			if string(controller) == "memory" {
				paths = append(paths, "/sys/fs/cgroup/memory"+string(f[2])+"/memory.oom_control")
			}
		}
	}
	return paths
}

// Count is the number so far, 0 if it can't be read.
func (c Counter) Count() int64 {
	n, _ := c.read()
	return n
}

func (c Counter) read() (int64, bool) {
	if c.fd < 0 {
		return 0, false
	}
	var buf [512]byte
	n, err := unix.Pread(c.fd, buf[:], 0)
	if err != nil {
		return 0, false
	}
	return parseKills(buf[:n])
}

// parseKills finds the line "oom_kill N", which both versions of cgroups have.
func parseKills(b []byte) (int64, bool) {
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) == 2 && string(f[0]) == "oom_kill" {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
