package wsync

import (
	"fmt"
	"time"
)

// Options are the limits and defaults of a Syncer. Zero fields take the default.
type Options struct {
	// PackSize is the size at which a pack is full. Default 8 MiB, at most 16 MiB.
	PackSize int64
	// SmallFile is the size below which a file goes into a pack. Default 256 KiB, at most PackSize.
	SmallFile int64
	// Parallel is how many packs are in flight. A Push or a Pull holds one more in memory, and those files of earlier
	// packs that the Tree has not written yet. Default 4.
	Parallel int
	// MaxEntries bounds a workspace. Default 500,000.
	MaxEntries int
	// MaxBytes bounds a workspace. Default 50 GiB.
	MaxBytes int64
	// MaxStateBytes bounds a state file. Default 64 MiB.
	MaxStateBytes int64
}

// Writer is the attempt that pushes. The state records it.
type Writer struct {
	Worker  string `json:"worker"`
	Job     string `json:"job"`
	Attempt int    `json:"attempt"`
	Fence   uint64 `json:"fence"`
}

// Syncer moves workspaces between a Store and Trees. It is safe for concurrent use. A workspace should have one holder
// at a time; the store's conditions keep a second one from doing harm.
type Syncer struct {
	store Store
	opts  Options
	now   func() time.Time
	newID func(time.Time) string
}

// New returns a Syncer on store. It does no I/O.
func New(store Store, opts Options) *Syncer {
	return &Syncer{store: store, opts: opts.withDefaults(), now: time.Now, newID: newULID}
}

// Pulled counts what a Pull did.
type Pulled struct {
	Files int
	Bytes int64
}

// Pushed tells what a Push did.
type Pushed struct {
	// Commit is the head now: a new one, or the base's if nothing changed.
	Commit string
	// Changes lists what was added, modified or deleted, sorted by path.
	Changes []Change
	// Files and Bytes that were uploaded; Deleted paths that the new state lacks.
	Files   int
	Bytes   int64
	Deleted int
	// Skipped names entries that can't be stored, each with the reason.
	Skipped []string
	// Unstable names files that changed while they were read.
	Unstable []string
}

// Change is one path whose stored content a Push changed.
type Change struct {
	Path string
	Kind ChangeKind
}

// ChangeKind says what happened to a path.
type ChangeKind string

// The kinds of change.
const (
	Added    ChangeKind = "added"
	Modified ChangeKind = "modified"
	Deleted  ChangeKind = "deleted"
)

// PushOptions name the writer and allow what is refused otherwise.
type PushOptions struct {
	Writer Writer
	// AllowMassDelete accepts a push that deletes most of the workspace.
	AllowMassDelete bool
}

// Conflict is the error of a Push whose base is not the head any more. Nothing was merged, and no object that the head
// names was touched. errors.Is(err, ErrConflict) holds.
type Conflict struct {
	// Prefix of the workspace.
	Prefix string
	// Base is the commit that this push started from, Head the one that is there now. Empty: none.
	Base, Head string
	// HeadWriter made Head.
	HeadWriter Writer
	// Commit is the commit that this push made, Version the object that keeps it. Both are empty if the push was refused
	// before anything was uploaded.
	Commit, Version string
	// Reason is the cause in words.
	Reason string
}

// Error names both commits.
func (c *Conflict) Error() string {
	s := fmt.Sprintf("%v: %s: %s (base %s, head %s by job %q on worker %q)",
		ErrConflict, c.Prefix, c.Reason, orNone(c.Base), orNone(c.Head), c.HeadWriter.Job, c.HeadWriter.Worker)
	if c.Version != "" {
		s += "; this push is kept as " + c.Version
	}
	return s
}

// Unwrap returns ErrConflict.
func (c *Conflict) Unwrap() error { return ErrConflict }

func orNone(commit string) string {
	if commit == "" {
		return "none"
	}
	return commit
}
