//go:build linux

package main

import (
	"sync"
	"time"
)

// lifeState says where the box stands. It only goes forward, and may leave out stopping:
//
//	serving ──stop──► stopping ──end──► ended ──kill──► killing
//
// In stopping no new request is taken and the commands are ended gently. From ended on it is decided with
// which exit code, and why, the box ends. In killing all processes are killed, so that what happens to a
// command says nothing about it.
type lifeState struct {
	stopping chan struct{} // closed by the first stop
	ended    chan struct{} // closed by the first end

	mu     sync.Mutex
	grace  time.Duration // of the first stop
	ending ending
	state  boxState
}

type boxState int

const (
	serving boxState = iota
	stopping
	ended
	killing
)

// ending is how the program ends: its exit code, and the reason for people.
type ending struct {
	code   int
	reason string
}

func newLifeState() *lifeState {
	return &lifeState{stopping: make(chan struct{}), ended: make(chan struct{})}
}

// stop asks for a gentle end. Only the first call counts; it reports whether it was that one.
func (l *lifeState) stop(grace time.Duration) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.stopping:
		return false
	default:
	}
	l.grace = grace
	l.state = max(l.state, stopping)
	close(l.stopping)
	return true
}

// isStopping reports whether a stop came.
func (l *lifeState) isStopping() bool {
	select {
	case <-l.stopping:
		return true
	default:
		return false
	}
}

// stopGrace is what the first stop gave.
func (l *lifeState) stopGrace() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grace
}

// end begins the end of the box. The first call decides how.
func (l *lifeState) end(code int, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= ended {
		return
	}
	l.state = ended
	l.ending = ending{code, reason}
	close(l.ended)
}

// wait returns how the box ends, once that is decided.
func (l *lifeState) wait() ending {
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending
}

// kill marks the beginning of the killing. Call it after wait.
func (l *lifeState) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = killing
}

func (l *lifeState) isKilling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == killing
}
