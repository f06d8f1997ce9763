package display

import (
	"fmt"
	"strings"
	"time"

	"slipway/cmd/internal/sanitize"
	"slipway/job"
	"slipway/job/follow"
)

func (p *Human) stepEnds(e job.Event) {
	took := ""
	if !p.step.IsZero() {
		took = " after " + Short(e.Time.Sub(p.step))
	}
	p.step = time.Time{}
	code := ""
	if e.ExitCode != nil && (*e.ExitCode != 0 || e.Status != job.StepSucceeded) {
		code = exitCode(*e.ExitCode, e.Signal)
	}
	line := fmt.Sprintf("%s %s%s%s%s", mark(e.Status), statusWord(e.Status), code, took, tries(e.Tries))
	switch {
	case e.Status == job.StepCanceled && e.Reason == job.ReasonDrained: // the worker ended it, and no user
		line = "– stopped" + took + ": the worker stops; the job runs again elsewhere"
	case e.Status == job.StepSkipped:
		line = fmt.Sprintf("%s step %d: %s skipped", mark(e.Status), e.Step+1, stepName(e.Name, e.Step))
	}
	p.say("  %s", p.opts.paint(statusColor(e.Status), line))
	if e.Text != "" && e.Reason != job.ReasonDrained {
		p.say("    %s", sanitize.Line(e.Text))
	}
	p.leftovers(e.Leftovers, e.Cut)
	if e.Truncated > 0 {
		p.say("    %s", p.opts.paint(yellow, logGap(e.Truncated, e.TruncatedLines)))
	}
}

// leftOut says how much output is missing at this place, and why.
func (p *Human) leftOut(e job.Event) {
	why := sanitize.Line(e.Text)
	if why == "" {
		why = "it came too fast" // an older worker gives no reason
	}
	p.flush()
	p.say("  %s", p.opts.paint(yellow, fmt.Sprintf("… %s left out here: %s", amount(e.Bytes, e.Lines), why)))
}

// Gap says that events are missing.
func Gap(g follow.Gap) string {
	what := fmt.Sprintf("the events of attempt %d are missing", g.Attempt)
	switch {
	case g.Missing == 1:
		what = "one event is missing here"
	case g.Missing > 1:
		what = fmt.Sprintf("%d events are missing here", g.Missing)
	}
	return what + ": not kept any more, or lost on the way"
}

// logGap says what the stored log of a step leaves out.
func logGap(bytes, lines int64) string {
	return fmt.Sprintf("its stored log leaves out %s between beginning and end: it is over the worker's limit", amount(bytes, lines))
}

// amount is an amount of output.
func amount(bytes, lines int64) string {
	if lines == 0 {
		return Size(bytes)
	}
	return fmt.Sprintf("%s (%s)", Size(bytes), Count(int(lines), "line"))
}

// tryEnds tells one try of a step from the next.
func (p *Human) tryEnds(e job.Event) {
	code := ""
	if e.ExitCode != nil {
		code = exitCode(*e.ExitCode, e.Signal)
	}
	p.say("  %s", p.opts.paint(yellow, fmt.Sprintf("%s try %d %s%s; next try %s", mark(e.Status), e.Tries, statusWord(e.Status), code, when(e))))
	if e.Text != "" {
		p.say("    %s", sanitize.Line(e.Text))
	}
}

// exitCode is how a command ended.
func exitCode(code int, signal string) string {
	if signal = sanitize.Line(signal); signal != "" {
		return fmt.Sprintf(" (exit code %d, %s)", code, signal)
	}
	return fmt.Sprintf(" (exit code %d)", code)
}

// title is a step's name or, if that is only its number, what it does.
func title(e job.Event) string {
	name, text := stepName(e.Name, e.Step), sanitize.Line(e.Text)
	if name == fmt.Sprint(e.Step+1) && text != "" {
		return text
	}
	return name
}

// resultTitle is what people know a step of a result by. An older worker's result has no titles.
func resultTitle(s job.StepResult) string {
	return title(job.Event{Step: s.Index, Name: s.Name, Text: s.Title})
}

// leftovers says what became of the processes that a step's command left running.
func (p *Human) leftovers(n int, cut bool) {
	var parts []string
	switch n {
	case 0:
	case 1:
		parts = append(parts, "1 process that its command left running was ended")
	default:
		parts = append(parts, fmt.Sprintf("%d processes that its command left running were ended", n))
	}
	if cut {
		parts = append(parts, "output is missing: more of it could come")
	}
	if len(parts) > 0 {
		p.say("    %s", p.opts.paint(yellow, strings.Join(parts, "; ")))
	}
}

// tries says how often a step was run, if more than once.
func tries(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", %d tries", n)
}

func stepName(name string, index int) string {
	if name = sanitize.Line(name); name != "" {
		return name
	}
	return fmt.Sprint(index + 1)
}

func mark(s job.StepStatus) string {
	switch s {
	case job.StepSucceeded:
		return "✓"
	case job.StepSkipped:
		return "–"
	}
	return "✗"
}

func statusWord(s job.StepStatus) string {
	return strings.ReplaceAll(sanitize.Line(string(s)), "_", " ")
}

func statusColor(s job.StepStatus) string {
	switch s {
	case job.StepSucceeded:
		return green
	case job.StepSkipped, job.StepCanceled:
		return dim
	}
	return red
}
