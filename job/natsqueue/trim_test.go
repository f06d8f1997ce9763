package natsqueue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"slipway/job"
	"slipway/job/natsqueue"
)

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in         job.Output
		keep       int
		head, tail string
		elided     int64
	}{
		{job.Output{Head: "abc", Tail: "xyz", Bytes: 6}, 3, "abc", "xyz", 0},
		{job.Output{Head: "abc", Tail: "xyz", Elided: 4, Bytes: 10}, 2, "ab", "yz", 6},
		{job.Output{Head: "äb", Tail: "yö", Bytes: 6}, 1, "", "", 6},
		{job.Output{Head: "äb", Tail: "yö", Bytes: 6}, 2, "ä", "ö", 2},
		{job.Output{Head: "abc", Bytes: 3}, 0, "", "", 3},
	} {
		got := natsqueue.Shorten(c.in, c.keep)
		if got.Head != c.head || got.Tail != c.tail || got.Elided != c.elided || got.Bytes != c.in.Bytes {
			t.Errorf("shorten %+v to %d: got %+v, want %q, %q, %d elided", c.in, c.keep, got, c.head, c.tail, c.elided)
		}
		if !utf8.ValidString(got.Head) || !utf8.ValidString(got.Tail) {
			t.Errorf("shorten %+v to %d: got broken characters", c.in, c.keep)
		}
	}
}

// Every result fits, decodes, and keeps the job's outcome.
func TestEncodeResultAlwaysFits(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	long := strings.Repeat("\x01", 300<<10)
	var many, wordy []job.StepResult
	for i := range 200 {
		many = append(many, job.StepResult{Index: i, Name: strings.Repeat("n", 500), Output: job.Output{Head: "x"}})
		wordy = append(wordy, job.StepResult{Index: i, Message: strings.Repeat("m", 4<<10)})
	}
	var changes []job.Change
	for i := range job.MaxChanges {
		changes = append(changes, job.Change{Path: strings.Repeat("p", 4<<10) + fmt.Sprint(i), Kind: "added"})
	}
	for name, r := range map[string]*job.Result{
		"output":  {Steps: []job.StepResult{{Output: job.Output{Head: long, Tail: long}}}},
		"paths":   {Workspace: &job.WorkspaceResult{Prefix: "p", Changes: changes, Skipped: []string{"a", "b"}, SkippedElided: 3}},
		"message": {Message: long},
		"steps":   {Steps: many},
		"wordy":   {Steps: wordy},
		"labels":  {Labels: map[string]string{"l": long}},
	} {
		r.Outcome, r.Reason = job.Failed, job.ReasonExit
		data, err := natsqueue.EncodeResult(r, limit)
		if err != nil || len(data) > limit {
			t.Errorf("%s: got %d bytes, %v; want at most %d", name, len(data), err, limit)
			continue
		}
		var back job.Result
		if err := json.Unmarshal(data, &back); err != nil || back.Outcome != job.Failed || back.Reason != job.ReasonExit {
			t.Errorf("%s: decoded %+v, %v", name, back, err)
		}
		if w := back.Workspace; w != nil && len(w.Changes)+w.ChangesElided != len(changes) {
			t.Errorf("%s: %d changes and %d elided, want %d in all", name, len(w.Changes), w.ChangesElided, len(changes))
		}
		if w := back.Workspace; w != nil && len(w.Skipped)+w.SkippedElided != 5 {
			t.Errorf("%s: %d skipped and %d elided, want 5 in all", name, len(w.Skipped), w.SkippedElided)
		}
		if got := len(back.Steps) + back.StepsElided; got != len(r.Steps) {
			t.Errorf("%s: %d steps and %d elided, want %d in all", name, len(back.Steps), back.StepsElided, len(r.Steps))
		}
	}
}
