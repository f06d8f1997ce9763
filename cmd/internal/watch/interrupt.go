package watch

import (
	"context"
	"errors"
	"time"

	"slipway/cmd/internal/display"
	"slipway/job"
)

// ErrDetached says that the person went away and the job goes on.
var ErrDetached = errors.New("detached: the job goes on without us")

// cancelTimeout bounds one request to cancel.
const cancelTimeout = 10 * time.Second

// Interruptible is Job for a program in front of a person. The first interrupt
// cancels the job, the second aborts it, and the third leaves the job alone and
// returns ErrDetached. third is the end of the sentence that announces the third one, such as
// "leaves it alone".
func Interruptible(ctx context.Context, client job.Client, id job.ID, p display.Printer, interrupts <-chan struct{}, third string) (*job.Result, error) {
	ctx, detach := context.WithCancelCause(ctx)
	defer detach(nil)
	sp := &syncPrinter{Printer: p}
	done := make(chan struct{})
	go func() {
		defer close(done)
		interrupted(ctx, client, id, sp, interrupts, third, detach)
	}()
	r, err := Job(ctx, client, id, sp)
	detach(nil)
	<-done
	return r, err
}

func interrupted(ctx context.Context, client job.Client, id job.ID, p display.Printer, interrupts <-chan struct{}, third string, detach context.CancelCauseFunc) {
	next := func() bool {
		select {
		case <-interrupts:
			return true
		case <-ctx.Done():
			return false
		}
	}
	if !next() {
		return
	}
	p.Note("interrupted: canceling the job; its always-steps still run. Once more aborts it, a third time %s", third)
	cancelJob(ctx, client, id, job.Cancel, p)
	if !next() {
		return
	}
	p.Note("aborting the job")
	cancelJob(ctx, client, id, job.Abort, p)
	if next() {
		detach(ErrDetached)
	}
}

func cancelJob(ctx context.Context, client job.Client, id job.ID, mode job.CancelMode, p display.Printer) {
	ctx, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	if _, err := client.Cancel(ctx, id, mode); err != nil && ctx.Err() == nil {
		p.Note("cancel %s: %v", id, err)
	}
}
