//go:build linux

package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// wipe empties the workspace and the scratch folders as everyone who may have put something there.
func (b *box) wipe() {
	until := time.Now().Add(wipeTime)
	dirs := append([]string{b.set.Workdir}, b.set.Scratch...)
	for _, dir := range dirs {
		if dir != "" && b.owns(dir) {
			b.wipeDir(dir, until)
		}
	}
	if b.set.Root == "" || os.Getpid() == 1 {
		return
	}
	r := &remover{until: until}
	if err := r.remove(unix.AT_FDCWD, b.set.Root); err != nil {
		complain("remove "+b.set.Root, err)
	}
}

func (b *box) wipeDir(dir string, until time.Time) {
	var last error
	for range 3 { // a folder of one user may hide some of another
		for id := range b.wipers() {
			err := asUser(id[0], id[1], func() error { return emptyDir(dir, until) })
			if err == nil {
				return
			}
			last = err
		}
	}
	complain("wipe "+dir, last)
}

func (b *box) wipers() map[[2]int]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := map[[2]int]bool{{os.Geteuid(), os.Getegid()}: true}
	for id := range b.ids {
		ids[id] = true
	}
	return ids
}

func emptyDir(path string, until time.Time) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	r := &remover{until: until}
	return r.empty(fd)
}
