//go:build linux

package proctree

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process is a line of the kernel's table of processes.
type Process struct {
	ID
	Parent  int
	group   int
	state   byte // as ps shows it, which is that of the first thread
	threads int
}

// ID tells a process from a later one with the same pid.
type ID struct {
	PID   int
	Start uint64 // in clock ticks since the machine started
}

// zombie reports whether p is dead and not yet reaped. A process whose first thread has ended has the
// state of a zombie too, but lives on in its other threads.
func (p Process) zombie() bool  { return p.ended() && p.threads <= 1 }
func (p Process) ended() bool   { return p.state == 'Z' || p.state == 'X' }
func (p Process) stopped() bool { return p.state == 'T' || p.state == 't' }

// Busy reports whether the first thread of p computes, or waits for a disk.
func (p Process) Busy() bool { return p.state == 'R' || p.state == 'D' }

// Descendants lists everything below the process with pid root, except zombies.
func Descendants(root int) ([]Process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]Process, len(all))
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var found []Process
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			next = append(next, p.PID)
			if !p.zombie() {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

func processes() ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]Process, 0, len(names))
	buf := make([]byte, 1024)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid, buf); ok {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

func readProcess(pid int, buf []byte) (Process, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, false
	}
	n, err := unix.Read(fd, buf)
	_ = unix.Close(fd)
	if err != nil || n <= 0 {
		return Process{}, false
	}
	return parseStat(pid, buf[:n])
}

// parseStat reads /proc/pid/stat. The process chooses the name in it, which may hold anything, also ") R 1".
func parseStat(pid int, b []byte) (Process, bool) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return Process{}, false
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 {
		return Process{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	group, err2 := strconv.Atoi(string(f[2]))
	threads, err3 := strconv.Atoi(string(f[17]))
	start, err4 := strconv.ParseUint(string(f[19]), 10, 64)
	p := Process{ID: ID{pid, start}, Parent: parent, group: group, state: f[0][0], threads: threads}
	return p, err1 == nil && err2 == nil && err3 == nil && err4 == nil
}
