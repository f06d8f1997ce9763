package steps

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/verdict"
	"slipway/runner/loop"
	wsync "slipway/sync"
)

// EndingTime is how long all always-steps together may take once the job's timeout ran out or a user canceled it.
const EndingTime = 5 * time.Minute

// endingOver is the cause at the end of EndingTime. It counts as the job's timeout.
type endingOver struct{}

func (endingOver) Error() string {
	return fmt.Sprintf("the steps that always run took longer than %s in all", EndingTime)
}
func (endingOver) Unwrap() error { return verdict.ErrJobTimeout }

// Config is what an Executor works with.
type Config struct {
	Box container.Sandbox
	// Destroy ends the box at once. It is called, perhaps beside Run, when the box can't end a command.
	Destroy func(context.Context)
	// DiskLimited: the workspace has a size of its own, which it can reach.
	DiskLimited bool
	// Check fills the defaults of a step that a Decider wants, and refuses one that is no step or that this worker does
	// not allow. Its error is told to the Decider. Nil: the steps were checked before.
	Check func(*job.Step) error

	Events   Events
	Observer Observer
	Log      *zap.Logger

	// Excerpt is the size of the head and of the tail of an output in the result, in bytes. Many steps get less each.
	Excerpt int
	// Observation is the same for what the Decider is told. 0: it is told what the result keeps.
	Observation int
	Logs        Logs
}

// Events is told what happens. Its methods are called from one goroutine, and don't wait.
type Events interface {
	Add(job.Event)
	Output(step int, stream string, p []byte)
	// Missing tells of n bytes of a step's output that did not arrive from the box.
	Missing(step int, n int64)
}

// Observer counts steps.
type Observer interface {
	StepDone(status job.StepStatus, took time.Duration)
	StepRetried()
	// LogKept tells what became of n bytes of a step's output: kept of them are in the result or in the store, lost of them
	// are in neither. cause, one of the Lost constants, says why. The calls of a try add up to what it printed.
	LogKept(kept, lost int64, cause string)
}

// Logs says where the full logs of steps are stored.
type Logs struct {
	Store  wsync.Store // nil: no logs are kept
	Folder string      // what the keys begin with, slash included
	Limit  int64       // of one log, in bytes
	Budget int64       // of all logs of the job, in bytes
}

// Executor runs the steps of one attempt. Make one with New, call Run once, then Wait, which is safe at
// any time, and Results.
type Executor struct {
	cfg     Config
	decider loop.Decider
	record  record
	logs    uploads
	excerpt int
	next    int // the index of the next step
}

// New makes the Executor of what d decides.
func New(cfg Config, d loop.Decider) *Executor {
	x := &Executor{cfg: cfg, decider: d, excerpt: cfg.Excerpt, record: record{budget: recordBudget}}
	x.logs.places, x.logs.budget = make(chan struct{}, maxUploads), cfg.Logs.Budget
	if p, ok := d.(loop.Planned); ok && len(p.Rest()) <= job.MaxSteps {
		x.excerpt, x.record.budget = excerptSize(cfg.Excerpt, len(p.Rest())), 0
	}
	return x
}

// excerptSize is what one of n steps may keep of its output's head, and of its tail: all of them must fit into one
// message of the queue.
func excerptSize(limit, n int) int {
	const all = 512 << 10 // bytes of JSON for all excerpts of one result
	return min(limit, all/(4*max(n, 1)))
}

// Run asks the Decider and does what it says, until it finishes or the attempt ends, and says how the job ended. Nothing
// goes on after hold has ended. Once work has ended, which is within hold, Run goes on for EndingTime with what runs always.
func (x *Executor) Run(hold, work context.Context) verdict.Verdict {
	p := &progress{hold: hold, work: work, ctx: work, verdict: verdict.Success(), release: func() {}}
	defer func() { p.release() }()
	for p.goesOn() {
		d, err := x.decider.Next(p.ctx, p.turn) //nolint:contextcheck // p.ctx is work, or within hold
		if err != nil {
			if p.undecided(err) {
				continue
			}
			break
		}
		if !p.accept(x.refuse(&d)) {
			continue
		}
		if d.Finish {
			p.finish()
			break
		}
		for i := range d.Actions {
			if i > 0 && p.ctx.Err() != nil {
				break
			}
			seen, err := x.act(hold, p.ctx, &d.Actions[i])
			if err != nil {
				p.broken(err)
				break
			}
			p.note(seen, d.Actions[i].Step.ContinueOnError)
		}
	}
	x.skipRest()
	return p.verdict
}

// refuse says why d can't be used, and fills the defaults of its steps. A decision is refused before any of it is done.
func (x *Executor) refuse(d *loop.Decision) string {
	switch {
	case d.Invalid != "":
		return d.Invalid
	case d.Finish && len(d.Actions) > 0:
		return "the decision finishes and names actions: only one of them"
	case d.Finish:
		return ""
	case len(d.Actions) == 0:
		return "the decision names no action, and does not finish"
	case len(d.Actions) > job.MaxSteps:
		return fmt.Sprintf("the decision has %d actions, more than %d", len(d.Actions), job.MaxSteps)
	case x.cfg.Check == nil:
		return ""
	}
	d.Actions = slices.Clone(d.Actions) // the Decider's own stay as they are: it may share them between attempts
	for i := range d.Actions {
		if err := x.cfg.Check(&d.Actions[i].Step); err != nil {
			return fmt.Sprintf("actions[%d]: %s", i, err)
		}
	}
	return ""
}

// skipRest reports the steps of a script that nobody asked for any more as skipped.
func (x *Executor) skipRest() {
	if p, ok := x.decider.(loop.Planned); ok {
		for _, s := range p.Rest() {
			x.skip(&s)
		}
	}
}

// Wait waits for the logs that are still on their way to the store.
func (x *Executor) Wait() { x.logs.under.Wait() }

// Results returns the results of the steps, and how many of them were left out between the first ones and the last ones.
// Call Wait first.
func (x *Executor) Results() (steps []job.StepResult, elided int) {
	steps = x.record.all()
	x.logs.note(steps)
	return steps, x.record.elided
}
