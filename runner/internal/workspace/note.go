package workspace

import (
	"strings"

	"slipway/job"
	"slipway/runner/internal/excerpt"
	wsync "slipway/sync"
)

// Bounds of the lists in a result beside job.MaxChanges, in bytes of JSON: paths can be 4 KiB long.
const (
	maxChangesBytes = 96 << 10
	maxSkippedBytes = 32 << 10
)

// notePush puts what a push did into r.
func notePush(r *job.WorkspaceResult, p wsync.Pushed) {
	r.Commit = p.Commit
	r.FilesPushed, r.BytesPushed, r.FilesDeleted = p.Files, p.Bytes, p.Deleted
	budget := maxChangesBytes
	for _, c := range p.Changes {
		name := strings.ToValidUTF8(c.Path, "\uFFFD")
		budget -= excerpt.JSONSize(name)
		if len(r.Changes) == job.MaxChanges || budget < 0 {
			break
		}
		r.Changes = append(r.Changes, job.Change{Path: name, Kind: string(c.Kind)})
	}
	r.ChangesElided = len(p.Changes) - len(r.Changes)
	var skipped []string
	for _, name := range p.Unstable {
		skipped = append(skipped, name+": changed while it was read; what was read last is saved")
	}
	skipped = append(skipped, p.Skipped...)
	budget = maxSkippedBytes
	for _, s := range skipped {
		s = strings.ToValidUTF8(s, "\uFFFD")
		budget -= excerpt.JSONSize(s)
		if len(r.Skipped) == job.MaxChanges || budget < 0 {
			break
		}
		r.Skipped = append(r.Skipped, s)
	}
	r.SkippedElided = len(skipped) - len(r.Skipped)
}

// observePush counts the files by what happened to them. A push knows only the
// sum of the bytes: they are counted with what was added, or else with what was modified.
func (w *Workspace) observePush(p wsync.Pushed) {
	counts := map[wsync.ChangeKind]int{}
	for _, c := range p.Changes {
		counts[c.Kind]++
	}
	bytes := p.Bytes
	for _, kind := range []wsync.ChangeKind{wsync.Added, wsync.Modified} {
		if counts[kind] > 0 {
			w.cfg.Observer.Synced("push", string(kind), counts[kind], bytes)
			bytes = 0
		}
	}
	if counts[wsync.Deleted] > 0 {
		w.cfg.Observer.Synced("push", string(wsync.Deleted), counts[wsync.Deleted], 0)
	}
}
