package steps

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/internal/hint"
	"slipway/job"
	"slipway/runner/internal/excerpt"
	"slipway/runner/internal/panics"
	"slipway/runner/internal/verdict"
	wsync "slipway/sync"
)

// LogTimeout bounds the upload of one step's log.
const LogTimeout = 2 * time.Minute

// maxUploads bounds the logs of one job that are on their way at once: each holds an open file of up to Logs.Limit, and
// a Decider may take any number of steps.
const maxUploads = 8

// Why bytes of output are kept nowhere, for Observer.LogKept.
const (
	LostLimit   = "limit"    // the step or the job went over its limit
	LostNoStore = "no_store" // the worker has no store
	LostStore   = "store"    // the store did not take the log in time
	LostDisk    = "disk"     // the worker's temporary folder did not take it
	LostTry     = "try"      // the step was tried again, and only the log of its last try is stored
	LostBox     = "box"      // they did not arrive from the box
)

// uploads are the logs on their way to the store, beside the steps that come after.
type uploads struct {
	under  sync.WaitGroup
	places chan struct{} // of maxUploads
	budget int64         // what the job's logs may still take
	mu     sync.Mutex
	stored map[int]job.Output // what is known of the log, by the step's index
}

// storeLog sends the log of a step to the store, beside what comes next, and closes out. It puts into r what is known
// at once, and returns the log's key. It waits while maxUploads are on their way. The upload ends with hold: the log of a
// step that ran out of time is stored, too.
func (x *Executor) storeLog(hold context.Context, r *job.StepResult, out *output) (key string) {
	if out.log == nil {
		x.notStored(&r.Output, out, out.unlogged, out.cause)
		return ""
	}
	l, err := out.log.finish()
	if err != nil {
		out.log.close()
		x.cfg.Log.Warn("make step's log", zap.Int("step", r.Index), zap.Error(err))
		x.notStored(&r.Output, out, "the worker's disk did not take it", LostDisk)
		return ""
	}
	select {
	case x.logs.places <- struct{}{}:
	case <-hold.Done():
		out.log.close()
		x.notStored(&r.Output, out, "the attempt ended before", LostStore)
		return ""
	}
	key = fmt.Sprintf("%s%03d-%s.log", x.cfg.Logs.Folder, r.Index+1, slug(r.Name))
	x.logs.budget -= l.kept
	r.Output.Truncated, r.Output.TruncatedLines = l.gapBytes, l.gapLines
	index, o := r.Index, r.Output
	o.LogKey, o.TruncatedAt = key, l.gapAt
	x.logs.under.Go(func() {
		defer func() { <-x.logs.places }()
		defer out.log.close()
		if err := panics.Catch(func() error { return putLog(hold, x.cfg.Logs.Store, key, l) }); err != nil {
			x.cfg.Log.Warn("store step's log", zap.String("key", key), zap.Error(err))
			o.LogKey, o.Truncated, o.TruncatedLines, o.TruncatedAt = "", 0, 0, 0
			x.notStored(&o, out, "the store did not take it: "+hint.Text(err), LostStore)
		} else {
			x.cfg.Observer.LogKept(l.kept, l.gapBytes, out.gapCause())
		}
		x.logs.keep(index, o)
	})
	return key
}

// keep notes what became of the log of a step.
func (u *uploads) keep(index int, o job.Output) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stored == nil {
		u.stored = map[int]job.Output{}
	}
	u.stored[index] = o
}

func putLog(ctx context.Context, store wsync.Store, key string, l *log) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, LogTimeout, &verdict.Timeout{What: "the upload of a log", Limit: LogTimeout})
	defer cancel()
	_, err := store.Put(ctx, key, l.reader(), l.size, wsync.PutOptions{})
	return err
}

// maxNotStored bounds the reason for a missing log, in bytes: it comes into the result beside the key of another one.
const maxNotStored = 200

// notStored notes that o is all that is kept of a step's output, and why, if that is not everything.
func (x *Executor) notStored(o *job.Output, out *output, why, cause string) {
	lost := o.Elided - out.missing
	if o.Elided > 0 {
		o.NotStored = excerpt.Shorten(why, maxNotStored)
	}
	x.cfg.Observer.LogKept(out.excerpt.Total()-lost, lost, cause)
}

// note puts what is known of the logs into the results.
func (u *uploads) note(steps []job.StepResult) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range steps {
		if o, ok := u.stored[steps[i].Index]; ok {
			to := &steps[i].Output
			to.LogKey, to.NotStored = o.LogKey, o.NotStored
			to.Truncated, to.TruncatedLines, to.TruncatedAt = o.Truncated, o.TruncatedLines, o.TruncatedAt
		}
	}
}

// slug makes a part of a key of a step's name.
func slug(name string) string {
	const limit = 40
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	s = strings.Trim(s[:min(len(s), limit)], "-")
	if s == "" {
		return "step"
	}
	return s
}
