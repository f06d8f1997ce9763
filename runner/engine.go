package runner

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/internal/pause"
)

// The clocks of engine.
const (
	engineFresh      = 5 * time.Second // how long an answer of the engine is believed
	engineTimeout    = 10 * time.Second
	engineBackoff    = time.Second // between two questions, doubling up to engineMaxBackoff
	engineMaxBackoff = 10 * time.Second
)

// engine is what a worker knows of its container engine. A worker whose engine is away would claim job after job and charge
// each for it: four attempts in a minute were seen. So a slot does not fetch before the engine answers, and a job
// that was claimed nevertheless goes back before anything was done for it, at no cost. Its methods are safe for concurrent use.
type engine struct {
	check func(context.Context) error
	log   *zap.Logger

	mu      sync.Mutex
	seen    time.Time // when it answered last; zero: it did not, or is in doubt
	away    bool      // it did not answer the last question
	doubted bool      // something failed that a dead engine would explain
}

// wait returns at once if nothing speaks against the engine, and else when it answers, or ctx ends.
func (e *engine) wait(ctx context.Context) {
	for delay := engineBackoff; e.suspect() && e.ready(ctx) != nil; delay = min(2*delay, engineMaxBackoff) {
		if !pause.For(ctx, delay) {
			return
		}
	}
}

// ready asks the engine whether it could make a box, unless it has answered a moment ago.
func (e *engine) ready(ctx context.Context) error {
	e.mu.Lock()
	fresh := time.Since(e.seen) < engineFresh
	e.mu.Unlock()
	if fresh {
		return nil
	}
	asked, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	err := e.check(asked)
	if err == nil || ctx.Err() == nil { // a question that was given up says nothing
		e.note(err)
	}
	return err
}

// note keeps the engine's answer, and logs a change.
func (e *engine) note(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.away
	e.away, e.doubted, e.seen = err != nil, false, time.Time{}
	if err == nil {
		e.seen = time.Now()
	}
	switch {
	case e.away && !was:
		e.log.Error("no jobs are fetched until the engine can make boxes", zap.Error(err))
	case was && !e.away:
		e.log.Info("the engine can make boxes again")
	}
}

// doubt has the engine asked before the next job is fetched.
func (e *engine) doubt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.doubted, e.seen = true, time.Time{}
}

func (e *engine) suspect() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.away || e.doubted
}
