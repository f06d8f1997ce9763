//go:build linux

package main

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/wire"
)

const (
	// killTime bounds the killing at the end: what is still there then is beyond signals.
	killTime = 10 * time.Second
	// wipeTime bounds the emptying of the workspace.
	wipeTime = time.Minute
	// byeTime bounds the last word to a worker that may not listen.
	byeTime = time.Second
)

// end begins the end of the box. The first call decides why.
func (b *box) end(code int, reason string) {
	b.ending.Do(func() { b.over <- verdict{code, reason} })
}

func (b *box) touch() { b.seen.Store(int64(time.Since(b.start))) }

// pong answers without waiting for a reader that does not read: Ping then has its answer on its way anyway.
func (b *box) pong() error {
	if b.ponging.CompareAndSwap(false, true) {
		go func() {
			_ = b.mux.Send(wire.Pong, 0, nil) // a closed stdout is a closed stdin, soon
			b.ponging.Store(false)
		}()
	}
	return nil
}

// watch ends the box when its worker is silent or its time is over. A look that comes
// late means that the box itself stood still (paused, starved): the worker's signs may still be in the pipe.
func (b *box) watch() {
	every := max(b.set.DeadMan/8, time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := time.Since(b.start)
	var excused time.Duration
	for range tick.C {
		now := time.Since(b.start)
		if now-last > 3*every {
			excused = now
		}
		last = now
		if now > b.set.Lifetime {
			b.end(exitLifetime, "its lifetime is over")
			return
		}
		if now-max(time.Duration(b.seen.Load()), excused) > b.set.DeadMan {
			b.end(exitSilent, "no sign of the worker")
			return
		}
	}
}

// stop ends all commands gently, and then the box.
func (b *box) stop(grace time.Duration) {
	b.stopOnce.Do(func() {
		b.stopGrace = grace
		close(b.stopping)
		go func() {
			done := make(chan struct{})
			go func() { b.execs.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(grace + killTime):
			}
			b.end(exitStopped, "stopped")
		}()
	})
}

// shutdown leaves nothing behind.
func (b *box) shutdown(v verdict) {
	b.down.Store(true)
	b.killAll()
	b.wipe()
	said := make(chan struct{})
	go func() {
		var e wire.Enc
		e.Uint(uint64(v.code))
		e.Str(v.reason)
		_ = b.mux.Send(wire.Bye, 0, e.B)
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(byeTime):
	}
}

// killAll ends every process but this one; outside a container: every descendant.
func (b *box) killAll() {
	alone := os.Getpid() == 1
	if !alone {
		b.steps.close()
	}
	for begin := time.Now(); time.Since(begin) < killTime; time.Sleep(time.Millisecond) { //nolint:forbidigo // nothing tells when all are dead
		if alone {
			_ = unix.Kill(-1, unix.SIGKILL)
		} else {
			slay(os.Getpid())
		}
		if reap() {
			return
		}
	}
}

// killOrphans ends what a dead step process left to this one. It looks until two looks in a
// row find nothing: one isn't of a single moment, so that a child may be seen below a parent that is then seen gone.
func (b *box) killOrphans() {
	calm := 0
	for begin := time.Now(); time.Since(begin) < killTime; time.Sleep(time.Millisecond) { //nolint:forbidigo // nothing tells when all are dead
		reap()
		list, err := descendants(os.Getpid())
		if err != nil {
			return
		}
		orphans := 0
		for _, p := range list {
			if p.parent != os.Getpid() || b.steps.owns(p.pid) {
				continue
			}
			orphans++
			for _, q := range append(freeze(p.pid), p) {
				q.send(unix.SIGKILL)
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

// reapForever collects ended children: step processes, and orphans of the box.
func reapForever(children <-chan os.Signal) {
	sweep := time.NewTicker(time.Second)
	defer sweep.Stop()
	for {
		select {
		case <-children:
		case <-sweep.C:
		}
		reap()
	}
}

// reap reports whether no child is left.
func reap() bool {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err == syscall.ECHILD:
			return true
		case err != nil || pid <= 0:
			return false
		}
	}
}
