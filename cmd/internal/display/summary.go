package display

import (
	"fmt"
	"strings"
	"time"

	"slipway/cmd/internal/sanitize"
	"slipway/job"
)

// Result prints how the job ended, and what became of its workspace and of its logs.
func (p *Human) Result(r *job.Result) {
	p.result(r, liveChanges)
	p.missingLogs(r)
}

// liveChanges is how many changed paths are listed after the job was followed.
const liveChanges = 20

func (p *Human) result(r *job.Result, changes int) {
	p.flush()
	p.close("")
	p.say("%s", p.opts.paint(outcomeColor(r.Outcome)+";"+bold, headline(r)))
	if r.Message != "" {
		p.say("  %s", sanitize.Line(r.Message))
	}
	if line := phaseLine(r.Phases); line != "" {
		p.say("  %s", p.opts.paint(dim, line))
	}
	if len(r.Relaxed) > 0 {
		p.say("  %s", p.opts.paint(yellow, "relaxed for this job: "+sanitize.Line(strings.Join(r.Relaxed, ", "))))
	}
	if r.Workspace != nil {
		p.workspace(r.Workspace, changes)
	}
}

// missingLogs says of which steps the result and the store together don't have the whole output.
func (p *Human) missingLogs(r *job.Result) {
	for _, s := range r.Steps {
		o := s.Output
		if o.Truncated == 0 && o.NotStored == "" {
			continue
		}
		what := logGap(o.Truncated, o.TruncatedLines)
		if o.NotStored != "" {
			what = fmt.Sprintf("%s of its output are kept nowhere: %s", Size(o.Elided), sanitize.Line(o.NotStored))
		}
		p.say("  %s", p.opts.paint(yellow, fmt.Sprintf("step %d: %s: %s", s.Index+1, resultTitle(s), what)))
	}
}

// ResultInFull prints r for a person who did not follow the job: it adds the steps, and the
// output of those that failed.
func (p *Human) ResultInFull(r *job.Result) {
	p.say("%s  %s", p.opts.paint(bold, string(r.JobID)), sanitize.Line(r.Name))
	next := 0
	for _, s := range r.Steps {
		if left := s.Index - next; left > 0 {
			p.say("  %s", p.opts.paint(dim, fmt.Sprintf("… %s left out …", Count(left, "step"))))
		}
		p.stepResult(s)
		next = s.Index + 1
	}
	p.result(r, job.MaxChanges)
	if r.Store != "" {
		p.say("  %s", p.opts.paint(dim, "objects are in "+sanitize.Line(r.Store)))
	}
}

func (p *Human) stepResult(s job.StepResult) {
	line := fmt.Sprintf("%s step %d: %s %s", mark(s.Status), s.Index+1, resultTitle(s), statusWord(s.Status))
	if s.ExitCode != nil && *s.ExitCode != 0 {
		line += exitCode(*s.ExitCode, s.Signal)
	}
	if s.Status != job.StepSkipped {
		line += " after " + Short(s.Duration.Std()) + tries(s.Tries)
	}
	p.say("%s", p.opts.paint(statusColor(s.Status), line))
	if s.Message != "" {
		p.say("    %s", sanitize.Line(s.Message))
	}
	p.leftovers(s.Leftovers, s.Output.Cut)
	p.log(s.Output)
	if s.Status != job.StepSucceeded {
		p.excerpt(s.Output)
	}
}

// log says where the log of a step is, if it has more than the result, and what it lacks.
func (p *Human) log(o job.Output) {
	switch {
	case o.NotStored != "":
		p.say("    %s", p.opts.paint(yellow, fmt.Sprintf("%s of its output are kept nowhere: %s", Size(o.Elided), sanitize.Line(o.NotStored))))
	case o.LogKey != "":
		p.say("    %s", p.opts.paint(dim, fmt.Sprintf("%s of output: submit logs shows them, or object %s", Size(o.Bytes), sanitize.Line(o.LogKey))))
	}
	if o.Truncated > 0 {
		p.say("    %s", p.opts.paint(yellow, logGap(o.Truncated, o.TruncatedLines)))
	}
}

func (p *Human) excerpt(o job.Output) {
	for line := range strings.Lines(sanitize.Text(o.Head)) {
		p.say("  %s%s", p.opts.paint(dim, "│ "), strings.TrimSuffix(line, "\n"))
	}
	if o.Elided > 0 {
		p.say("  %s", p.opts.paint(dim, fmt.Sprintf("… %s left out …", Size(o.Elided))))
	}
	for line := range strings.Lines(sanitize.Text(o.Tail)) {
		p.say("  %s%s", p.opts.paint(dim, "│ "), strings.TrimSuffix(line, "\n"))
	}
}

func headline(r *job.Result) string {
	s := strings.ReplaceAll(sanitize.Line(string(r.Outcome)), "_", " ")
	if r.Reason != "" {
		s += " (" + strings.ReplaceAll(sanitize.Line(string(r.Reason)), "_", " ") + ")"
	}
	if from, to := r.SubmittedAt, r.FinishedAt; !from.IsZero() && to.After(from) {
		s += " in " + Short(to.Sub(from))
	}
	if r.Attempt > 1 {
		s += fmt.Sprintf(", at attempt %d", r.Attempt)
	}
	return s
}

func outcomeColor(o job.Outcome) string {
	switch o {
	case job.Succeeded:
		return green
	case job.Canceled:
		return yellow
	}
	return red
}

func phaseLine(ph job.Phases) string {
	var parts []string
	for _, p := range []struct {
		name string
		d    job.Duration
	}{
		{"queue", ph.Queue},
		{"image", ph.PullImage},
		{"box", ph.Create},
		{"pull", ph.PullWorkspace},
		{"steps", ph.Steps},
		{"push", ph.PushWorkspace},
	} {
		if p.d > 0 {
			parts = append(parts, p.name+" "+Short(time.Duration(p.d)))
		}
	}
	return strings.Join(parts, " · ")
}

func (p *Human) workspace(w *job.WorkspaceResult, most int) {
	saved := fmt.Sprintf("%s (%s) pushed, %d deleted", Count(w.FilesPushed, "file"), Size(w.BytesPushed), w.FilesDeleted)
	if w.NotSaved != "" { // "0 files pushed" would look as if nothing had changed
		saved = "changes not saved (" + sanitize.Line(w.NotSaved) + ")"
	}
	p.say("  workspace %s: %s pulled, %s", sanitize.Line(w.Prefix), Count(w.FilesPulled, "file"), saved)
	listed := w.Changes[:min(len(w.Changes), most)]
	for _, c := range listed {
		p.say("    %s %s", changeMark(c.Kind), sanitize.Line(c.Path))
	}
	if more := len(w.Changes) - len(listed) + w.ChangesElided; more > 0 {
		p.say("    … and %d more", more)
	}
	for _, s := range w.Skipped {
		p.say("    %s", p.opts.paint(yellow, "not stored: "+sanitize.Line(s)))
	}
	if w.SkippedElided > 0 {
		p.say("    %s", p.opts.paint(yellow, fmt.Sprintf("not stored: %d more", w.SkippedElided)))
	}
}

func changeMark(kind string) string {
	switch kind {
	case "added":
		return "+"
	case "deleted":
		return "-"
	}
	return "~"
}
