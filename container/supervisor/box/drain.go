//go:build linux

package main

import (
	"time"

	"slipway/container/supervisor/box/internal/step"
)

const (
	// idleGrace is how long processes that outlive their leader may print nothing, before DrainTime and their end. Each
	// piece of output renews it. A shell that starts a program for each line takes a few milliseconds a line, so that this
	// is enough on a machine with far too much to do. A silent server that holds the output delays the end of its command
	// by the sum of both.
	idleGrace = 400 * time.Millisecond
	// idleLooks is how many looks in a row must find nothing. Looks are counted, and not time: while the whole box
	// stands still nothing can come.
	idleLooks = 4
	// quietLooks is at how many of them, the last ones, the processes must be at rest, too: a reader that sorts prints only at
	// its end. One look is not enough: it misses a process that is being forked, and sees only the parent that waits for it.
	quietLooks = 2
)

// drain waits while processes that outlive their leader print, and then has them ended. copied is closed when no process
// holds the output any more, over when the command's tree is dead.
func (p *pipes) drain(proc *step.Proc, copied, over <-chan struct{}) {
	tick := time.NewTicker(idleGrace / idleLooks)
	defer tick.Stop()
	s := silence{printed: p.printed()}
	for {
		select {
		case <-over:
			return
		case <-copied:
			proc.Drained()
			return
		case <-tick.C:
		}
		if s.look(p.printed(), p.sending(), proc.Busy) {
			proc.Drained()
			return
		}
	}
}

// silence counts the looks in a row that found neither output nor work.
type silence struct {
	printed int64
	looks   int
}

// look reports whether idleLooks in a row found nothing. Output that waits for the worker holds up those who print. busy is
// asked at the last looks only: it reads /proc.
func (s *silence) look(printed int64, sending bool, busy func() bool) bool {
	s.looks++
	if printed != s.printed || sending || s.looks > idleLooks-quietLooks && busy() {
		s.printed, s.looks = printed, 0
		return false
	}
	return s.looks >= idleLooks
}

func (p *pipes) printed() int64 { return p.out.count.Load() + p.err.count.Load() }

func (p *pipes) sending() bool { return p.out.sending.Load() || p.err.sending.Load() }

// finish waits until all output has been sent, and reports whether some was cut. The tree is dead, so that the pipes end,
// unless a process outside the tree holds one of them. That process is not waited for: a pipe that gives nothing between two
// ticks is closed, and any pipe after DrainLimit. An outlet that waits for a slow worker keeps its time.
func (p *pipes) finish(copied <-chan struct{}) (cut bool) {
	const every = step.DrainTime / 2
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last [2]int64
	for looks := 0; ; looks++ {
		select {
		case <-copied:
			return cut
		case <-tick.C:
		}
		for i, o := range []*outlet{&p.out, &p.err} {
			now := o.count.Load()
			quiet, late := looks > 0 && now == last[i], looks > int(step.DrainLimit/every)
			if (quiet || late) && !o.sending.Load() {
				_ = o.file.SetReadDeadline(time.Now())
				cut = cut || !quiet
			}
			last[i] = now
		}
	}
}
