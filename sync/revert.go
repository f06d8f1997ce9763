package wsync

import (
	"context"
	"fmt"
	"strings"
)

// Revert takes back what earlier attempts of w's job saved at prefix. An attempt may have pushed and died before its
// result; without a Revert the next attempt would start from that push. The head becomes, as a new commit, what it was
// before the job first wrote it. Revert reports whether there was anything to take back.
//
// Errors: *Conflict if another writer commits meanwhile; ErrState; ErrUnsupported; ErrCorrupt if the version to go back
// to is missing; and those of the store. It may be repeated like a Push.
func (s *Syncer) Revert(ctx context.Context, prefix string, w Writer) (bool, error) {
	base, err := s.Open(ctx, prefix)
	if err != nil {
		return false, err
	}
	if w.Job == "" || base.state == nil || base.state.Writer.Job != w.Job {
		return false, nil
	}
	before, err := s.before(ctx, base.Prefix, base.state, w.Job)
	if err != nil {
		return false, fmt.Errorf("revert the workspace %s: %w", base.Prefix, err)
	}
	p := &push{
		syncer: s, base: base, prefix: base.Prefix, opts: PushOptions{Writer: w},
		scan: &scan{entries: before.Files}, packs: before.Packs,
	}
	if err := p.checkFence(); err != nil {
		return false, err
	}
	if len(diff(base.files(), before.Files)) == 0 {
		return false, nil // taken back already
	}
	if _, err := p.commit(ctx, p.nextState(p.commitTime())); err != nil {
		return false, fmt.Errorf("revert the workspace %s: %w", base.Prefix, err)
	}
	return true, nil
}

// before is the newest state up to head that job did not write, an empty one if there is none.
func (s *Syncer) before(ctx context.Context, prefix string, head *state, job string) (*state, error) {
	at := head
	for at.Writer.Job == job {
		if at.Parent == "" {
			return &state{}, nil
		}
		var err error
		if at, err = s.readVersion(ctx, prefix, at.Parent); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// readVersion reads the immutable copy of a commit's state. Its name begins with a time that only a list tells.
func (s *Syncer) readVersion(ctx context.Context, prefix, commit string) (*state, error) {
	for info, err := range s.store.List(ctx, prefix+"versions/") {
		if err != nil {
			return nil, fmt.Errorf("find the version %s: %w", commit, err)
		}
		if strings.HasSuffix(info.Key, "-"+commit+".json") {
			h, err := s.readState(ctx, "version", info.Key)
			return h.state, err
		}
	}
	return nil, corrupt(prefix+"versions/", "the version %s is missing", commit)
}
