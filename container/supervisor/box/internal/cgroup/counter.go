//go:build linux

package cgroup

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Counter reads one number of this process's cgroup. A counter that can't be read stays at 0.
type Counter struct {
	fd  int
	key string
}

// source is where both versions of cgroups keep a counter.
type source struct {
	controller string // as /proc/self/cgroup names it
	v1, v2     string // the files
	key        string // of the line "key N", the same in both
}

// OpenKills opens the number of processes that the kernel has killed for memory.
func OpenKills() Counter {
	return open(source{controller: "memory", v1: "memory.oom_control", v2: "memory.events", key: "oom_kill"})
}

// OpenRefusals opens the number of forks that the kernel has refused because the cgroup was at its limit of processes and
// threads.
func OpenRefusals() Counter {
	return open(source{controller: "pids", v1: "pids.events", v2: "pids.events", key: "max"})
}

// open finds the counter. In a box with a cgroup namespace the cgroup's own files are at the root of the mount;
// without one they are where /proc/self/cgroup says.
func open(s source) Counter {
	paths := []string{"/sys/fs/cgroup/" + s.v2, "/sys/fs/cgroup/" + s.controller + "/" + s.v1}
	if b, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		paths = append(s.files(b), paths...)
	}
	return openFirst(paths, s.key)
}

func openFirst(paths []string, key string) Counter {
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		c := Counter{fd, key}
		if _, ok := c.read(); ok {
			return c
		}
		_ = unix.Close(fd)
	}
	return Counter{fd: -1}
}

// files names the counter's file for each line of /proc/self/cgroup that may have one.
func (s source) files(table []byte) []string {
	var paths []string
	for line := range bytes.Lines(table) {
		f := bytes.SplitN(bytes.TrimSpace(line), []byte(":"), 3)
		if len(f) != 3 || string(f[2]) == "/" {
			continue
		}
		if len(f[1]) == 0 {
			paths = append(paths, "/sys/fs/cgroup"+string(f[2])+"/"+s.v2)
		}
		for _, controller := range bytes.Split(f[1], []byte(",")) {
			if string(controller) == s.controller {
				paths = append(paths, "/sys/fs/cgroup/"+s.controller+string(f[2])+"/"+s.v1)
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
	return parse(buf[:n], c.key)
}

// parse finds the line "key N".
func parse(b []byte, key string) (int64, bool) {
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) == 2 && string(f[0]) == key {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
