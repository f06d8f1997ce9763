package runner

import (
	"bytes"
	"context"
	"errors"
	"time"

	"slipway/container"
	"slipway/job"
)

const (
	moreDisk = "ask for more with resources.disk"
	fullStep = "the workspace is full; " + moreDisk
	fullFile = "a file of this step hit the box's limit of a file's size; " + moreDisk
)

const (
	probePath = ".sandbox-state-room" // one of the names that are slipway's own: no workspace holds it
	probeSize = 4 << 10               // one page: what is less than that is full
	probeTime = 10 * time.Second
)

// limited reports whether the workspace has a size of its own.
func (a *attempt) limited() bool { return a.spec.Resources.Disk > 0 }

// blameDisk tells a command that failed for want of room from one that failed. No exit code does: the box
// is asked whether there is room now. A command that took its files away before it ended stays an exit.
func (a *attempt) blameDisk(ctx context.Context, r *job.StepResult) {
	if !a.limited() || r.Status != job.StepFailed || r.Reason != job.ReasonExit || r.Message != "" {
		return
	}
	const byShell = 128 + 25 // what it makes of a child that SIGXFSZ ended
	switch {
	case a.full(ctx):
		r.Reason, r.Message = job.ReasonDisk, fullStep
	case r.Signal == "SIGXFSZ" || r.ExitCode != nil && *r.ExitCode == byShell:
		r.Reason, r.Message = job.ReasonDisk, fullFile
	}
}

// full reports whether the workspace can't take another page, or another file. A cancel does not end it: it would
// leave the probe to the steps that always run.
func (a *attempt) full(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	files := a.sandbox.Files()
	err := files.Write(ctx, probePath, bytes.NewReader(make([]byte, probeSize)), 0o600)
	if err == nil {
		err = files.Delete(ctx, probePath)
	}
	return errors.Is(err, container.ErrNoSpace)
}

// hintDisk adds what to do to the message of an error, if it is that a workspace of limited size is full.
func (a *attempt) hintDisk(message string, err error) string {
	if a.limited() && errors.Is(err, container.ErrNoSpace) {
		return message + "; " + moreDisk
	}
	return message
}
