package workspace

import (
	"encoding/json"
	"strings"
	"testing"

	"slipway/job"
	wsync "slipway/sync"
)

func TestNotePush_Bounds(t *testing.T) {
	t.Parallel()
	var p wsync.Pushed
	for range 300 {
		p.Changes = append(p.Changes, wsync.Change{Path: "x", Kind: wsync.Added})
		p.Skipped = append(p.Skipped, "s: a socket")
	}
	var r job.WorkspaceResult
	notePush(&r, p)
	if len(r.Changes) != job.MaxChanges || r.ChangesElided != 300-job.MaxChanges || len(r.Skipped) != job.MaxChanges || r.SkippedElided != 300-job.MaxChanges {
		t.Errorf("got %d changes, %d elided, %d skipped, %d elided", len(r.Changes), r.ChangesElided, len(r.Skipped), r.SkippedElided)
	}
	p = wsync.Pushed{Unstable: []string{"u"}}
	for range 100 {
		p.Changes = append(p.Changes, wsync.Change{Path: strings.Repeat("<\xff", 2000), Kind: wsync.Added})
	}
	r = job.WorkspaceResult{}
	notePush(&r, p)
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if size := len(data); size > maxChangesBytes+maxSkippedBytes || len(r.Changes)+r.ChangesElided != 100 {
		t.Errorf("got %d bytes, %d changes and %d elided", size, len(r.Changes), r.ChangesElided)
	}
	if len(r.Skipped) != 1 || !strings.HasPrefix(r.Skipped[0], "u: ") {
		t.Errorf("got skipped %v, want the file that changed while it was read", r.Skipped)
	}
}
