package steps

import (
	"bytes"
	"context"
	"errors"
	"time"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/verdict"
)

const (
	fullStep = "the workspace is full; " + verdict.MoreDisk
	fullFile = "a file of this step hit the box's limit of a file's size; " + verdict.MoreDisk
)

// The question whether there is room.
const (
	probePath = ".sandbox-state-room" // one of the names that are slipway's own: no workspace holds it
	probeSize = 4 << 10               // one page: what is less than that is full
	ProbeTime = 10 * time.Second
)

// blameDisk tells a command that failed because the workspace is full from one that failed. No exit code does: the box
// is asked whether there is room now. A command that took its files away before it ended stays an exit.
func (x *Executor) blameDisk(ctx context.Context, r *job.StepResult) {
	if !x.cfg.DiskLimited || r.Status != job.StepFailed || r.Reason != job.ReasonExit || r.Message != "" {
		return
	}
	const byShell = 128 + 25 // what it makes of a child that SIGXFSZ ended
	switch {
	case x.full(ctx):
		r.Reason, r.Message = job.ReasonDisk, fullStep
	case r.Signal == "SIGXFSZ" || r.ExitCode != nil && *r.ExitCode == byShell:
		r.Reason, r.Message = job.ReasonDisk, fullFile
	}
}

// full reports whether the workspace can't take another page, or another file. A cancel does not end it: it would
// leave the probe to the steps that always run.
func (x *Executor) full(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ProbeTime)
	defer cancel()
	files := x.cfg.Box.Files()
	err := files.Write(ctx, probePath, bytes.NewReader(make([]byte, probeSize)), 0o600)
	if err == nil {
		err = files.Delete(ctx, probePath)
	}
	return errors.Is(err, container.ErrNoSpace)
}
