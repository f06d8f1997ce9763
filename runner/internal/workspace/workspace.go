package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/internal/hint"
	"slipway/job"
	"slipway/runner/internal/verdict"
	wsync "slipway/sync"
)

// What a worker keeps in its store, below Config.Prefix.
const (
	workspacesFolder = "workspaces/" // one folder per workspace
	inputsFolder     = "inputs/"     // what Input.Key is relative to
)

// Config is what a Workspace works with.
type Config struct {
	Store  wsync.Store // nil without one; the job then needs none
	Syncer *wsync.Syncer
	Prefix string // of every key
	Writer wsync.Writer
	// Confirm tells whether the job is still this attempt's. It is called right before a push.
	Confirm  func(context.Context) error
	Observer Observer
	Log      *zap.Logger
}

// Observer counts what is moved.
type Observer interface {
	Synced(direction, action string, files int, bytes int64)
	Conflict()
}

// Workspace is the files of one job in one attempt. It is used from one goroutine.
type Workspace struct {
	cfg       Config
	job       *job.Job
	fromImage bool                 // the box begins with its image's files
	undone    bool                 // what an earlier attempt left without a result was looked for
	base      *wsync.Base          // nil: no state is kept, or it was not opened
	result    *job.WorkspaceResult // nil before Fill, and without a workspace
}

// New makes the Workspace of a job with its defaults. It does no I/O.
func New(cfg Config, j *job.Job) *Workspace { return &Workspace{cfg: cfg, job: j} }

// Needed reports whether Fill has something to do.
func (w *Workspace) Needed() bool { return w.job.Workspace != nil || len(w.job.Inputs) > 0 }

// Result says what happened to the workspace. Nil if the job has none, or Fill was not called.
func (w *Workspace) Result() *job.WorkspaceResult { return w.result }

// FromImage reports whether the box shall begin with the files of its image: the job says so, and nothing is stored that
// would be restored instead. It is asked before the box is made; Fill holds to the answer.
func (w *Workspace) FromImage(ctx context.Context) (bool, error) {
	ws := w.job.Workspace
	if ws == nil || !ws.FromImage {
		return false, nil
	}
	w.fromImage = true
	if ws.Prefix == "" || ws.Pull == job.WorkspacePullNever {
		return true, nil
	}
	empty, err := w.nothingStored(ctx, w.prefix())
	var known *verdict.Fault
	if err != nil && !errors.As(err, &known) {
		err = &verdict.Fault{Reason: job.ReasonWorkspacePull, Err: err} // it fails while the box is made
	}
	w.fromImage = empty
	return empty, err
}

func (w *Workspace) nothingStored(ctx context.Context, prefix string) (bool, error) {
	if err := w.undo(ctx, prefix); err != nil {
		return false, err
	}
	base, err := w.cfg.Syncer.Open(ctx, prefix)
	if err != nil {
		return false, unrestorable(prefix, err)
	}
	return base.Empty(), nil
}

// prefix is where the workspace is kept in the store.
func (w *Workspace) prefix() string { return w.cfg.Prefix + workspacesFolder + w.job.Workspace.Prefix }

// Fill restores the workspace and puts the inputs into it.
func (w *Workspace) Fill(ctx context.Context, files container.Files) error {
	if w.fromImage {
		if err := w.checkImage(ctx, files); err != nil {
			return err
		}
	}
	if ws := w.job.Workspace; ws != nil && ws.Prefix != "" {
		if err := w.pull(ctx, boxTree{files}); err != nil {
			return err
		}
	}
	if len(w.job.Inputs) > 0 {
		return w.writeInputs(ctx, files)
	}
	return nil
}

// checkImage refuses a job whose image has nothing where the workspace lies: its author expects files there.
func (w *Workspace) checkImage(ctx context.Context, files container.Files) error {
	entries, err := files.List(ctx, ".")
	if err != nil || len(entries) > 0 {
		return err
	}
	dir := cmp.Or(w.job.Workdir, job.DefaultWorkdir)
	err = fmt.Errorf("workspace.from_image: the image has no files at %s: set workdir to the folder that holds them", dir)
	return &verdict.Fault{Reason: job.ReasonSpecInvalid, Final: true, Err: err}
}

func (w *Workspace) pull(ctx context.Context, tree wsync.Tree) error {
	ws, prefix := w.job.Workspace, w.prefix()
	w.result = &job.WorkspaceResult{Prefix: ws.Prefix}
	if err := w.undo(ctx, prefix); err != nil {
		return err
	}
	if ws.Pull == job.WorkspacePullNever {
		return w.open(ctx, prefix)
	}
	if w.fromImage {
		return w.begin(ctx, prefix)
	}
	base, pulled, err := w.cfg.Syncer.Pull(ctx, prefix, tree)
	if err != nil {
		return unrestorable(prefix, err)
	}
	if ws.FromImage && base.Empty() {
		return fmt.Errorf("restore the workspace %s: %w: it was removed meanwhile", prefix, wsync.ErrConflict)
	}
	w.noteBase(base)
	w.result.FilesPulled, w.result.BytesPulled = pulled.Files, pulled.Bytes
	if pulled.Files > 0 {
		w.cfg.Observer.Synced("pull", "restored", pulled.Files, pulled.Bytes)
	}
	return nil
}

// undo takes back what an earlier attempt pushed before it died without a result. Without this the job would start from
// that push.
func (w *Workspace) undo(ctx context.Context, prefix string) error {
	if w.undone || w.cfg.Writer.Fence <= 1 || w.job.Workspace.Push != job.WorkspacePushOnSuccess {
		return nil
	}
	undone, err := w.cfg.Syncer.Revert(ctx, prefix, w.cfg.Writer)
	if err != nil {
		return unrestorable(prefix, err)
	}
	w.undone = true
	if undone {
		w.cfg.Log.Warn("what an earlier attempt saved is taken back: it has no result", zap.String("workspace", w.job.Workspace.Prefix))
	}
	return nil
}

// begin opens a workspace whose box holds the image's files. What somebody has stored since FromImage is not restored over
// them: the next attempt does that, in an empty box.
func (w *Workspace) begin(ctx context.Context, prefix string) error {
	base, err := w.cfg.Syncer.Open(ctx, prefix)
	if err != nil {
		return unrestorable(prefix, err)
	}
	if !base.Empty() {
		return fmt.Errorf("begin the workspace %s with the image's files: %w: it was stored meanwhile", prefix, wsync.ErrConflict)
	}
	w.noteBase(base)
	return nil
}

// open reads the stored state that a push needs, and restores nothing.
func (w *Workspace) open(ctx context.Context, prefix string) error {
	if w.job.Workspace.Push == job.WorkspacePushNever {
		return nil
	}
	base, err := w.cfg.Syncer.Open(ctx, prefix)
	if err != nil {
		return unrestorable(prefix, err)
	}
	w.noteBase(base)
	return nil
}

// unrestorable makes a verdict of an error of a stored workspace that no other attempt would get past, with what a person can
// do about it. Any other error is returned as it is.
func unrestorable(prefix string, err error) error {
	switch {
	case errors.Is(err, wsync.ErrUnsupported):
		err = hint.With(err, "a newer version of the worker has written it: run the job on such a worker")
	case errors.Is(err, wsync.ErrState), errors.Is(err, wsync.ErrCorrupt):
		err = hint.With(err, "each earlier state is an object below %[1]s/versions/ of the worker's store: copy one over %[1]s/.sandbox-state, "+
			"or remove all of %[1]s/ to begin with an empty workspace", prefix)
	default:
		return err
	}
	return &verdict.Fault{Reason: job.ReasonWorkspacePull, Final: true, Err: err}
}

func (w *Workspace) noteBase(base *wsync.Base) {
	w.base = base
	w.result.Base, w.result.Commit = base.Commit, base.Commit
}

// Saves reports whether the workspace is saved after steps that ended with outcome. Never after a fault of the machinery:
// nobody knows what the files are worth then. If not, the result says why.
func (w *Workspace) Saves(outcome job.Outcome) bool {
	if w.base != nil {
		switch w.job.Workspace.Push {
		case job.WorkspacePushAlways:
			if outcome != job.Errored {
				return true
			}
		case job.WorkspacePushOnSuccess:
			if outcome == job.Succeeded {
				return true
			}
		}
	}
	if w.result == nil {
		return false
	}
	if push := w.job.Workspace.Push; outcome == job.Errored && push != job.WorkspacePushNever {
		w.NotSaved("the job did not run to its end")
	} else {
		w.NotSaved("push: " + string(push))
	}
	return false
}

// NotSaved notes in the result why what the steps changed was not saved.
func (w *Workspace) NotSaved(why string) { w.result.NotSaved = why }

// Push saves what changed.
func (w *Workspace) Push(ctx context.Context, files container.Files) error {
	// A worker that has lost its queue can't commit a result: it must not leave changes without one either.
	if err := w.cfg.Confirm(ctx); err != nil {
		return fmt.Errorf("confirm the lease before the push: %w", err)
	}
	pushed, err := w.cfg.Syncer.Push(ctx, w.base, boxTree{files}, wsync.PushOptions{
		Writer: w.cfg.Writer,
		// A job that does not restore the files, and saves nevertheless, means to replace them.
		AllowMassDelete: w.job.Workspace.Pull == job.WorkspacePullNever,
	})
	if errors.Is(err, wsync.ErrConflict) {
		w.cfg.Observer.Conflict()
	}
	if err != nil {
		return err // as all errors of the Syncer, it names the workspace
	}
	notePush(w.result, pushed)
	w.observePush(pushed)
	return nil
}
