//go:build linux

package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/privs"
	"slipway/container/supervisor/box/internal/proctree"
	"slipway/container/supervisor/box/internal/workspace"
	"slipway/container/supervisor/internal/wire"
)

const (
	// killTime bounds the killing at the end. Signals don't reach what lives on after it.
	killTime = 10 * time.Second
	// wipeTime bounds the emptying of the workspace. It is generous: a wipe goes on only while it gets further, 60,000
	// nested folders took 105 s on a disk that was busy, and what a box leaves is more trouble than what it still does.
	wipeTime = 10 * time.Minute
	// byeTime bounds the last word to a worker that may not listen.
	byeTime = time.Second
)

// stop ends all commands gently, and then the box. Only the first call counts.
func (b *box) stop(grace time.Duration) {
	if !b.life.stop(grace) {
		return
	}
	go func() {
		done := make(chan struct{})
		go func() { b.execs.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(grace + killTime):
		}
		b.life.end(exitStopped, "stopped")
	}()
}

// shutdown leaves nothing behind. The processes go first: they could write to what is wiped. Bye goes last: it
// says that all is done.
func (b *box) shutdown(e ending) {
	b.life.kill()
	b.killAll()
	b.wipe()
	sent := make(chan struct{})
	go func() {
		var enc wire.Enc
		enc.Uint(uint64(e.code))
		enc.Str(e.reason)
		_ = b.mux.Send(wire.Bye, 0, enc.B)
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(byeTime):
	}
}

// killAll ends every process but this one; outside a container: every descendant.
func (b *box) killAll() {
	alone := os.Getpid() == 1
	if !alone {
		b.steps.Close()
	}
	for begin := time.Now(); time.Since(begin) < killTime; time.Sleep(time.Millisecond) { //nolint:forbidigo // nothing tells when all are dead
		if alone {
			_ = unix.Kill(-1, unix.SIGKILL)
		} else {
			proctree.Kill(os.Getpid())
		}
		if proctree.Reap(b.steps.Ended) {
			return
		}
	}
}

// killOrphans ends what a dead step process left to this one. It looks until two looks in a row find
// nothing: a look is not of a single moment, so that one may see a child below a parent that it then sees gone.
func (b *box) killOrphans() {
	calm := 0
	for begin := time.Now(); time.Since(begin) < killTime; time.Sleep(time.Millisecond) { //nolint:forbidigo // nothing tells when all are dead
		proctree.Reap(b.steps.Ended)
		list, err := proctree.Descendants(os.Getpid())
		if err != nil {
			return
		}
		orphans := 0
		for _, p := range list {
			if p.Parent != os.Getpid() || b.steps.Owns(p.PID) {
				continue
			}
			orphans++
			for _, q := range append(proctree.Freeze(p.PID), p) {
				q.Send(unix.SIGKILL)
			}
		}
		if orphans > 0 {
			calm = 0
			continue
		}
		if calm++; calm == 2 {
			return
		}
	}
}

// wipe empties the workspace and the scratch folders, as each user that may have put something there.
func (b *box) wipe() {
	until := time.Now().Add(wipeTime)
	dirs := append([]string{b.set.Workdir}, b.set.Scratch...)
	b.files.OpenUp(workspace.RootMode) // else the files of other users may stay below a folder that its owner has closed
	for _, dir := range dirs {
		if dir != "" && b.owns(dir) {
			b.wipeDir(dir, until)
		}
	}
	if b.set.Root == "" || os.Getpid() == 1 {
		return
	}
	if err := workspace.Remove(b.set.Root, until); err != nil {
		complain("remove "+b.set.Root, err)
	}
}

func (b *box) wipeDir(dir string, until time.Time) {
	var last error
	for progress := true; progress; { // a folder of one user may hide some of another, and so on
		progress = false
		for u := range b.wipers() {
			err := privs.AsUser(u.uid, u.gid, func() error {
				some, err := workspace.Empty(dir, until)
				progress = progress || some
				return err
			})
			if err == nil {
				return
			}
			last = err
		}
		progress = progress && time.Now().Before(until)
	}
	complain("wipe "+dir, last)
}

// wipers are the users that may own something in the box: this process's, and those of all commands.
func (b *box) wipers() map[user]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	users := map[user]bool{{os.Geteuid(), os.Getegid()}: true}
	for u := range b.users {
		users[u] = true
	}
	return users
}
