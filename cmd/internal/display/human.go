package display

import (
	"fmt"
	"strings"
	"time"

	"slipway/cmd/internal/sanitize"
	"slipway/job"
)

// Human prints for people. It names a phase when the phase begins and adds the
// duration when it ends, so that a person who waits sees for what. It is not safe for
// concurrent use.
type Human struct {
	opts    Options
	outputs outputs   // of the running step
	step    time.Time // start of the running step
	phase   time.Time // start of the running phase
	// open reports whether the last line on Err is that of the running phase and has no line end yet.
	open bool
}

// NewHuman returns a Printer for people.
func NewHuman(opts Options) *Human {
	return &Human{opts: opts, outputs: outputs{opts: opts, streams: map[string]*stream{}}}
}

const (
	green  = "32"
	red    = "31"
	yellow = "33"
	dim    = "2"
	bold   = "1"
)

// paint colors s, if colors are wanted.
func (o Options) paint(code, s string) string {
	if !o.Color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *Human) say(format string, args ...any) {
	p.close("")
	fmt.Fprintf(p.opts.Err, format+"\n", args...)
}

// close ends the lines that are still open where the next text goes: the line of the
// running phase, and the last lines of the job's output. with ends the phase's line.
func (p *Human) close(with string) {
	p.outputs.endLines(func(name string) bool { return p.opts.Quote || name == "stderr" })
	p.closePhase(with)
}

func (p *Human) closePhase(with string) {
	if p.open {
		p.open = false
		fmt.Fprintln(p.opts.Err, with)
	}
}

// Submitted names the job.
func (p *Human) Submitted(j *job.Job) {
	name := ""
	if j.Name != "" {
		name = " (" + sanitize.Line(j.Name) + ")"
	}
	p.say("%s%s is in queue %s", p.opts.paint(bold, string(j.ID)), name, queueOf(j))
}

// Note prints a remark.
func (p *Human) Note(format string, args ...any) { p.say(format, args...) }

// Event prints e.
func (p *Human) Event(e job.Event) {
	switch e.Kind {
	case job.EventClaimed:
		p.claimed(e)
	case job.EventPhase:
		p.phaseBegins(e)
	case job.EventStepStart:
		p.phaseEnds(e.Time)
		p.step = e.Time
		p.say("%s", p.opts.paint(bold, fmt.Sprintf("step %d: %s", e.Step+1, title(e))))
	case job.EventOutput:
		p.output(e)
	case job.EventStepRetry:
		p.flush()
		p.tryEnds(e)
	case job.EventStepEnd:
		p.flush()
		p.stepEnds(e)
	case job.EventDropped:
		p.leftOut(e)
	case job.EventRetry:
		p.phaseEnds(e.Time)
		p.flush()
		p.say("%s", p.opts.paint(yellow, fmt.Sprintf("attempt %d ended (%s): %s; %s", e.Attempt, sanitize.Line(string(e.Reason)), sanitize.Line(e.Text), nextTry(e))))
	case job.EventFinished:
		p.phaseEnds(e.Time)
		p.flush()
	}
}

// nextTry says when the next attempt begins, and how many more there can be.
func nextTry(e job.Event) string {
	next := "next try " + when(e)
	switch {
	case e.Class == job.ClassShutdown:
		return next + ", at no cost"
	case e.Left == 1:
		return next + ", the last one"
	case e.Left > 1:
		return fmt.Sprintf("%s, %d tries left", next, e.Left)
	}
	return next
}

// when is the wait until NotBefore.
func when(e job.Event) string {
	if wait := e.NotBefore.Sub(e.Time); !e.NotBefore.IsZero() && wait > 0 {
		return "in " + Short(wait)
	}
	return "at once"
}

func (p *Human) claimed(e job.Event) {
	p.phaseEnds(e.Time)
	text := "taken by a worker"
	if e.Text != "" {
		text = "taken by " + sanitize.Line(e.Text)
	}
	if e.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	p.say("%s", text)
}

func (p *Human) phaseBegins(e job.Event) {
	p.phaseEnds(e.Time)
	if e.Text == "steps" {
		return // each step has a line of its own
	}
	p.close("")
	fmt.Fprint(p.opts.Err, p.opts.paint(dim, "  "+strings.ReplaceAll(sanitize.Line(e.Text), "_", " ")+" …"))
	p.open, p.phase = true, e.Time
}

func (p *Human) phaseEnds(at time.Time) {
	if !p.phase.IsZero() {
		p.close(p.opts.paint(dim, " "+Short(at.Sub(p.phase))))
		p.phase = time.Time{}
	}
}

// output prints a piece of what the running step prints.
func (p *Human) output(e job.Event) {
	p.closePhase("")
	p.outputs.print(e)
}

// Flush ends the lines that are still open, when printing ends before the job does.
func (p *Human) Flush() {
	p.flush()
	p.close("")
}

// flush prints the rest of a step's output and ends its last line.
func (p *Human) flush() {
	p.outputs.flush()
	p.close("")
	clear(p.outputs.streams)
}
