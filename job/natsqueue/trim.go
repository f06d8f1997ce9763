package natsqueue

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"slipway/job"
)

// encodeResult encodes r in at most limit bytes. The steps' outputs are shortened first: all excerpts evenly, and the
// bytes that they lose are counted as elided. Then the lists of paths are left out, then the messages are cut. A result
// that is still too large has absurdly many steps: they are left out, and the message says so.
func encodeResult(r *job.Result, limit int) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil || len(data) <= limit {
		return data, err
	}
	short := *r
	for keep := longest(r.Steps) / 2; ; keep /= 2 {
		short.Steps = slices.Clone(r.Steps)
		for i := range short.Steps {
			short.Steps[i].Output = shorten(short.Steps[i].Output, keep)
		}
		if data, err = json.Marshal(&short); err != nil || len(data) <= limit {
			return data, err
		}
		if keep == 0 {
			break
		}
	}
	if r.Workspace != nil {
		w := *r.Workspace
		w.ChangesElided += len(w.Changes)
		w.SkippedElided += len(w.Skipped)
		w.Changes, w.Skipped = nil, nil
		short.Workspace = &w
	}
	short.Message, short.Labels = cut(r.Message, 1<<10), nil
	for i := range short.Steps {
		short.Steps[i].Message = cut(short.Steps[i].Message, 256)
	}
	if data, err = json.Marshal(&short); err != nil || len(data) <= limit {
		return data, err
	}
	short.Message += fmt.Sprintf(" (the results of %d steps were too large to be kept)", len(short.Steps))
	short.StepsElided += len(short.Steps)
	short.Steps = nil
	return json.Marshal(&short)
}

func longest(steps []job.StepResult) int {
	n := 0
	for _, s := range steps {
		n = max(n, len(s.Output.Head), len(s.Output.Tail))
	}
	return n
}

// shorten keeps at most keep bytes of o's head and as many of its tail, in whole characters.
func shorten(o job.Output, keep int) job.Output {
	head := cut(o.Head, keep)
	tail := o.Tail
	if len(tail) > keep {
		from := len(tail) - keep
		for from < len(tail) && !utf8.RuneStart(tail[from]) {
			from++
		}
		tail = tail[from:]
	}
	o.Elided += int64(len(o.Head) - len(head) + len(o.Tail) - len(tail))
	o.Head, o.Tail = head, tail
	return o
}

// cut keeps at most n bytes of s, in whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
