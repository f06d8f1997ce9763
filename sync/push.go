package wsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Push saves what changed in tree since base, and moves base on to the new head. Packs and blobs go first, under new
// names; the head is replaced last, and only if it still is base's. A failure in between leaves the old state whole. If
// nothing changed, nothing is written.
//
// Errors: *Conflict if another writer committed since the pull; ErrMassDelete if more than half of the entries (and over
// 100), or all of them, would be deleted without AllowMassDelete; ErrTooLarge; and those of the store and the tree.
// After an ErrUnavailable or the context's error the new state may be the head all the same: Open tells.
func (s *Syncer) Push(ctx context.Context, base *Base, tree Tree, opts PushOptions) (Pushed, error) {
	if base == nil {
		return Pushed{}, errors.New("push the workspace: no base: use what Pull or Open returned")
	}
	prefix, err := cleanPrefix(base.Prefix)
	if err != nil {
		return Pushed{}, err
	}
	p := &push{syncer: s, base: base, tree: tree, opts: opts, prefix: prefix}
	if err := p.run(ctx); err != nil {
		return Pushed{}, fmt.Errorf("push the workspace %s: %w", prefix, err)
	}
	return p.done, nil
}

// push is one save under way.
type push struct {
	syncer *Syncer
	base   *Base
	tree   Tree
	opts   PushOptions
	prefix string
	scan   *scan
	packs  []pack // base's, then the new ones
	done   Pushed
}

func (p *push) run(ctx context.Context) error {
	if err := p.checkFence(); err != nil {
		return err
	}
	var err error
	if p.scan, err = scanTree(ctx, p.tree, p.syncer.opts); err != nil {
		return err
	}
	if err := p.scan.resolve(ctx, p.base, p.tree); err != nil {
		return err
	}
	p.scan.keepProtected(p.base)
	p.done.Commit = p.base.Commit
	changes := p.changes()
	if len(changes) == 0 {
		p.finish()
		return nil
	}
	if err := p.checkMassDelete(changes); err != nil {
		return err
	}
	if p.base.state != nil {
		p.packs = slices.Clone(p.base.state.Packs)
	}
	p.repack()
	if err := p.upload(ctx); err != nil {
		return err
	}
	return p.commitChanges(ctx)
}

// changes compares the scan with base. Whether base still is the head is found out by the commit.
func (p *push) changes() []Change {
	return diff(p.base.files(), p.scan.entries)
}

// checkFence refuses an older attempt of the job that wrote the head. Fences of different jobs can't be compared; there
// the compare-and-set decides.
func (p *push) checkFence() error {
	if p.base.state == nil {
		return nil
	}
	w := p.base.state.Writer
	if w.Job == "" || w.Job != p.opts.Writer.Job || p.opts.Writer.Fence >= w.Fence {
		return nil
	}
	return &Conflict{
		Prefix: p.prefix, Base: p.base.Commit, Head: p.base.Commit, HeadWriter: w,
		Reason: fmt.Sprintf("the head was written under fence %d, this attempt holds %d", w.Fence, p.opts.Writer.Fence),
	}
}

// checkMassDelete refuses a push that deletes most of the workspace: a mount that failed, or a folder that was wiped, would
// otherwise empty the store.
func (p *push) checkMassDelete(changes []Change) error {
	if p.opts.AllowMassDelete {
		return nil
	}
	deleted, had := countDeleted(changes), len(p.base.files())
	if deleted > 100 && deleted*2 > had || had > 0 && len(p.scan.entries) == 0 {
		return fmt.Errorf("%w: %d of %d entries", ErrMassDelete, deleted, had)
	}
	return nil
}

func (p *push) commitChanges(ctx context.Context) error {
	p.scan.dropUnread()
	p.scan.keepProtected(p.base)
	changes := p.changes()
	if len(changes) == 0 {
		p.finish() // what looked changed was the same when it was read
		return nil
	}
	next := p.nextState(p.commitTime())
	if err := checkState(next, p.syncer.opts); err != nil {
		return fmt.Errorf("the new state breaks a rule and was not committed: %w", err)
	}
	etag, err := p.commit(ctx, next)
	if err != nil {
		return err
	}
	p.done.Changes, p.done.Deleted = changes, countDeleted(changes)
	p.done.Commit = next.Commit
	p.base.Commit, p.base.state, p.base.etag, p.base.index = next.Commit, next, etag, nil
	p.finish()
	return nil
}

// commitTime is now, or just after base's commit if the clock is behind that: versions sort by it.
func (p *push) commitTime() time.Time {
	now := p.syncer.now().UTC()
	if p.base.state != nil && !now.After(p.base.state.CreatedAt) {
		now = p.base.state.CreatedAt.Add(time.Millisecond)
	}
	return now.Truncate(time.Millisecond)
}

// finish moves what base remembers of the files on to this scan.
func (p *push) finish() {
	p.base.sigs = p.scan.sigs
	p.done.Skipped = p.scan.skipped
}

func countDeleted(changes []Change) int {
	n := 0
	for _, c := range changes {
		if c.Kind == Deleted {
			n++
		}
	}
	return n
}

// nextState describes the tree as it was read, with the packs that are still used.
func (p *push) nextState(now time.Time) *state {
	n := &state{
		Version: stateVersion, LastSyncedAt: now.Unix(), Workspace: p.prefix[:len(p.prefix)-1],
		Commit: p.syncer.newID(now), Generation: 1, Writer: p.opts.Writer, CreatedAt: now,
		Layout: layoutPacked, Files: p.scan.entries,
	}
	if b := p.base.state; b != nil {
		n.Generation, n.Parent, n.extra, n.IgnoreSHA256 = b.Generation+1, b.Commit, b.extra, b.IgnoreSHA256
		n.Parents = slices.Insert(slices.Clone(b.Parents), 0, b.Commit)
		n.Parents = slices.DeleteFunc(n.Parents, func(c string) bool { return c == "" })
		n.Parents = n.Parents[:min(len(n.Parents), maxParents)]
	}
	index := make([]int, len(p.packs)) // old place → new one, counted from 1
	for i := range n.Files {
		e := &n.Files[i]
		if e.Type == TypeFile {
			n.Totals.Files++
			n.Totals.Bytes += e.Size
		}
		if e.Pack < 0 {
			continue
		}
		if index[e.Pack] == 0 {
			n.Packs = append(n.Packs, p.packs[e.Pack])
			index[e.Pack] = len(n.Packs)
		}
		e.Pack = index[e.Pack] - 1
	}
	return n
}

const (
	// maxPacks is how many packs a state names before the emptiest are rewritten, down to keepPacks.
	maxPacks  = 64
	keepPacks = 32
)

// repack marks files for a new upload, so that the number of packs and the dead bytes in them stay bounded. Without it
// a Pull after many small pushes would be as slow as one object per file. The bytes come from the tree, not from the store.
func (p *push) repack() {
	live := make([]int64, len(p.packs))
	for i := range p.scan.entries {
		if e := &p.scan.entries[i]; e.Pack >= 0 {
			live[e.Pack] += e.Size
		}
	}
	var used []int
	for i := range live {
		if live[i] > 0 {
			used = append(used, i)
		}
	}
	slices.SortFunc(used, func(a, b int) int { return int(live[a] - live[b]) })
	victims := map[int]bool{}
	for n, i := range used {
		sparse := p.packs[i].Size > p.syncer.opts.PackSize/8 && live[i]*4 < p.packs[i].Size
		if sparse || len(used) > maxPacks && len(used)-n > keepPacks {
			victims[i] = true
		}
	}
	for i := range p.scan.entries {
		e := &p.scan.entries[i]
		if _, readable := p.scan.nodes[e.Path]; readable && e.Pack >= 0 && victims[e.Pack] {
			e.dirty = true
		}
	}
}
