package runner

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/box"
	"slipway/runner/internal/verdict"
)

// The names of an attempt's phases, in order. They are metric labels: package metrics lists the same ones.
const (
	phasePullImage     = "pull_image"
	phaseCreate        = "create"
	phasePullWorkspace = "pull_workspace"
	phaseSteps         = "steps"
	phasePushWorkspace = "push_workspace"
	phaseCleanup       = "cleanup"
)

// phase is a part of an attempt that is timed, bounded and told about.
type phase struct {
	name      string
	limit     *verdict.Timeout
	took      *job.Duration // where its time goes
	otherwise job.Reason    // of an error that no contract knows
	do        func(context.Context) error
}

// setup lists the phases before the steps.
func (a *attempt) setup() []phase {
	p, cfg := &a.result.Phases, &a.worker.cfg
	phases := []phase{
		{phasePullImage, &verdict.Timeout{What: "the pull of the image (PullTimeout)", Limit: cfg.PullTimeout}, &p.PullImage, job.ReasonImagePull, a.prepareImage},
		{phaseCreate, &verdict.Timeout{What: "the start of the box", Limit: box.CreateTimeout}, &p.Create, job.ReasonEngineUnavailable, a.startBox},
	}
	if a.workspace.Needed() {
		limit := &verdict.Timeout{What: "the pull of the workspace (SyncTimeout)", Limit: cfg.SyncTimeout}
		phases = append(phases, phase{phasePullWorkspace, limit, &p.PullWorkspace, job.ReasonWorkspacePull, a.fillWorkspace})
	}
	return phases
}

// push is the phase that saves the workspace.
func (a *attempt) push() phase {
	limit := &verdict.Timeout{What: "the push of the workspace (SyncTimeout)", Limit: a.worker.cfg.SyncTimeout}
	return phase{phasePushWorkspace, limit, &a.result.Phases.PushWorkspace, job.ReasonWorkspacePush, func(ctx context.Context) error {
		return a.workspace.Push(ctx, a.box.Sandbox().Files())
	}}
}

// phase runs p. ok is false if it failed, and v says how that counts.
func (a *attempt) phase(ctx context.Context, p phase) (v verdict.Verdict, ok bool) {
	began := a.enter(p.name)
	err := p.run(ctx)
	a.leave(p.name, began, p.took, err == nil)
	if err == nil {
		return v, true
	}
	v = verdict.Judge(err, context.Cause(ctx), p.otherwise)
	if v.Reason == job.ReasonDisk {
		v.Message = verdict.HintDisk(v.Message, err, a.spec.Resources.Disk > 0)
	}
	return v, false
}

// enter begins a phase.
func (a *attempt) enter(name string) (began time.Time) {
	a.events.Add(job.Event{Kind: job.EventPhase, Text: name})
	return time.Now()
}

// leave ends a phase.
func (a *attempt) leave(name string, began time.Time, sum *job.Duration, ok bool) {
	took := time.Since(began)
	*sum += job.Duration(took)
	a.worker.cfg.Observer.PhaseDone(name, took, ok)
	a.log.Debug("phase done", zap.String("phase", name), zap.Duration("took", took), zap.Bool("ok", ok))
}

// run does the phase within its limit.
func (p phase) run(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.limit.Limit, p.limit)
	defer cancel()
	err := p.do(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("%w: %w", p.limit, err) // without it a person reads no more than "deadline exceeded"
	}
	return err
}

func (a *attempt) prepareImage(ctx context.Context) error {
	img, err := a.worker.cfg.Provider.Prepare(ctx, container.ImageRequest{
		Image: a.job.Image, Platform: a.job.Platform, Pull: container.PullPolicy(a.job.Pull),
	})
	if err != nil {
		return fmt.Errorf("get image %s: %w", a.job.Image, err)
	}
	a.spec.Image = img.ID
	a.result.ImageDigest = img.Digest
	return nil
}

func (a *attempt) startBox(ctx context.Context) error {
	fromImage, err := a.workspace.FromImage(ctx)
	if err != nil {
		return err
	}
	a.spec.FromImage = fromImage
	if err := a.box.Start(ctx, a.spec); err != nil {
		return err
	}
	a.result.BoxID = a.box.Sandbox().Info().ID
	return nil
}

func (a *attempt) fillWorkspace(ctx context.Context) error {
	return a.workspace.Fill(ctx, a.box.Sandbox().Files())
}
