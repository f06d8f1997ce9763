package runner

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
	wsync "slipway/sync"
)

// What a worker keeps in its store, below Config.Prefix.
const (
	workspacesFolder = "workspaces/" // one folder per workspace
	inputsFolder     = "inputs/"     // what Input.Key is relative to
)

// workspace is what an attempt knows of the stored workspace.
type workspace struct {
	base   *wsync.Base // nil: none is kept, or it was not opened
	result *job.WorkspaceResult
}

// fillWorkspace restores the workspace and puts the inputs into it.
func (a *attempt) fillWorkspace(ctx context.Context) error {
	tree := boxTree{a.sandbox.Files()}
	if a.job.Workspace != nil {
		if err := a.pull(ctx, tree); err != nil {
			return err
		}
	}
	if len(a.job.Inputs) > 0 {
		return a.writeInputs(ctx)
	}
	return nil
}

func (a *attempt) pull(ctx context.Context, tree wsync.Tree) error {
	w := a.job.Workspace
	prefix := a.w.cfg.Prefix + workspacesFolder + w.Prefix
	a.work.result = &job.WorkspaceResult{Prefix: w.Prefix}
	a.result.Workspace = a.work.result
	if a.d.Fence > 1 && w.Push == job.WorkspacePushOnSuccess {
		// An attempt that succeeded, saved its files and died before its result would have this one work on top of its work.
		undone, err := a.w.syncer.Revert(ctx, prefix, a.writer())
		if err != nil {
			return err
		}
		if undone {
			a.log.Warn("what an earlier attempt saved is taken back: it has no result", zap.String("workspace", w.Prefix))
		}
	}
	if w.Pull == job.WorkspacePullNever {
		if w.Push == job.WorkspacePushNever {
			return nil
		}
		base, err := a.w.syncer.Open(ctx, prefix)
		if err != nil {
			return fmt.Errorf("open workspace %s: %w", w.Prefix, err)
		}
		a.noteBase(base)
		return nil
	}
	base, pulled, err := a.w.syncer.Pull(ctx, prefix, tree)
	if err != nil {
		return fmt.Errorf("pull workspace %s: %w", w.Prefix, err)
	}
	a.noteBase(base)
	a.work.result.FilesPulled, a.work.result.BytesPulled = pulled.Files, pulled.Bytes
	if pulled.Files > 0 {
		a.obs.Synced("pull", "restored", pulled.Files, pulled.Bytes)
	}
	return nil
}

func (a *attempt) writer() wsync.Writer {
	return wsync.Writer{Worker: a.w.cfg.Name, Job: string(a.d.ID), Attempt: a.d.Attempt, Fence: a.d.Fence}
}

func (a *attempt) noteBase(base *wsync.Base) {
	a.work.base = base
	a.work.result.Base, a.work.result.Commit = base.Commit, base.Commit
}

// pushes reports whether the workspace is saved after steps that ended with v.
// Never after a fault of the machinery: nobody knows what the files are worth then.
func (a *attempt) pushes(v verdict) bool {
	if a.job == nil || a.job.Workspace == nil || a.work.base == nil {
		return false
	}
	switch a.job.Workspace.Push {
	case job.WorkspacePushAlways:
		return v.outcome != job.Errored
	case job.WorkspacePushOnSuccess:
		return v.outcome == job.Succeeded
	}
	return false
}

// notSaved notes why there is no push after steps that ended with v.
func (a *attempt) notSaved(v verdict) {
	if a.work.result == nil {
		return
	}
	a.work.result.NotSaved = "push: " + string(a.job.Workspace.Push)
	if v.outcome == job.Errored && a.job.Workspace.Push != job.WorkspacePushNever {
		a.work.result.NotSaved = "the job did not run to its end"
	}
}

// push is the phase that saves the workspace.
func (a *attempt) push() phase {
	limit := &timeoutError{"the push of the workspace (SyncTimeout)", a.w.cfg.SyncTimeout}
	return phase{phasePushWorkspace, limit, &a.result.Phases.PushWorkspace, a.pushWorkspace}
}

func (a *attempt) pushWorkspace(ctx context.Context) error {
	// A worker that has lost its queue can't commit a result: it must not leave changes without one either.
	if err := a.keeper.confirm(ctx); err != nil {
		return fmt.Errorf("confirm the lease before the push: %w", err)
	}
	pushed, err := a.w.syncer.Push(ctx, a.work.base, boxTree{a.sandbox.Files()}, wsync.PushOptions{
		Writer: a.writer(),
		// Who does not restore the files, and saves nevertheless, means to replace them.
		AllowMassDelete: a.job.Workspace.Pull == job.WorkspacePullNever,
	})
	if errors.Is(err, wsync.ErrConflict) {
		a.obs.Conflict()
	}
	if err != nil {
		return fmt.Errorf("push workspace %s: %w", a.job.Workspace.Prefix, err)
	}
	notePush(a.work.result, pushed)
	a.observePush(pushed)
	return nil
}

// Bounds of the lists in a result beside job.MaxChanges, in bytes of JSON: paths can be 4 KiB long.
const (
	maxChangesBytes = 96 << 10
	maxSkippedBytes = 32 << 10
)

// notePush puts what a push did into r.
func notePush(r *job.WorkspaceResult, p wsync.Pushed) {
	r.Commit = p.Commit
	r.FilesPushed, r.BytesPushed, r.FilesDeleted = p.Files, p.Bytes, p.Deleted
	room := maxChangesBytes
	for _, c := range p.Changes {
		name := strings.ToValidUTF8(c.Path, "\uFFFD")
		room -= jsonSize(name)
		if len(r.Changes) == job.MaxChanges || room < 0 {
			break
		}
		r.Changes = append(r.Changes, job.Change{Path: name, Kind: string(c.Kind)})
	}
	r.ChangesElided = len(p.Changes) - len(r.Changes)
	skipped := slices.Clone(p.Skipped)
	for _, name := range p.Unstable {
		skipped = append(skipped, name+": changed while it was read; what was read last is saved")
	}
	room = maxSkippedBytes
	for _, s := range skipped {
		s = strings.ToValidUTF8(s, "\uFFFD")
		room -= jsonSize(s)
		if len(r.Skipped) == job.MaxChanges || room < 0 {
			break
		}
		r.Skipped = append(r.Skipped, s)
	}
}

// jsonSize is how many bytes encoding/json makes of s.
func jsonSize(s string) int {
	n := 2
	for _, r := range s {
		n += jsonLen(r, len(string(r)))
	}
	return n
}

// observePush counts the files by what happened to them. A push knows only the
// sum of the bytes: they are counted with what was added, or else with what was modified.
func (a *attempt) observePush(p wsync.Pushed) {
	counts := map[wsync.ChangeKind]int{}
	for _, c := range p.Changes {
		counts[c.Kind]++
	}
	bytes := p.Bytes
	for _, kind := range []wsync.ChangeKind{wsync.Added, wsync.Modified} {
		if counts[kind] > 0 {
			a.obs.Synced("push", string(kind), counts[kind], bytes)
			bytes = 0
		}
	}
	if counts[wsync.Deleted] > 0 {
		a.obs.Synced("push", string(wsync.Deleted), counts[wsync.Deleted], 0)
	}
}

// writeInputs puts all inputs into the workspace with one request, after one for
// each folder that they need.
func (a *attempt) writeInputs(ctx context.Context) error {
	files := a.sandbox.Files()
	made := map[string]bool{".": true}
	for i := range a.job.Inputs {
		dir := path.Dir(path.Clean(a.job.Inputs[i].Path))
		if made[dir] {
			continue
		}
		made[dir] = true
		if err := files.Mkdir(ctx, dir, 0o755); err != nil {
			return inputError(i, &a.job.Inputs[i], err)
		}
	}
	in := &inputs{store: a.w.cfg.Store, folder: a.w.cfg.Prefix + inputsFolder, list: a.job.Inputs}
	if _, err := files.WriteAll(ctx, in.all(ctx)); err != nil {
		if f := (*fault)(nil); errors.As(err, &f) {
			return err
		}
		return inputError(in.at, &a.job.Inputs[in.at], err)
	}
	return nil
}

// inputError names the input. What the job itself got wrong is not tried again.
func inputError(i int, in *job.Input, err error) error {
	named := fmt.Errorf("inputs[%d] (%s): %w", i, in.Path, err)
	for _, e := range fileErrors {
		if errors.Is(err, e) && !errors.Is(err, container.ErrNoSpace) {
			return &fault{reason: job.ReasonWorkspacePull, final: true, err: named}
		}
	}
	return named
}
