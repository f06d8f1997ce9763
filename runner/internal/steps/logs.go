package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/job"
	"slipway/runner/internal/panics"
	"slipway/runner/internal/verdict"
	wsync "slipway/sync"
)

// LogTimeout bounds the upload of one step's log.
const LogTimeout = 2 * time.Minute

// maxUploads bounds the logs of one job that are on their way at once: each holds an open file of up to Logs.Limit, and
// a Decider may take any number of steps.
const maxUploads = 8

// uploads are the logs on their way to the store, beside the steps that come after.
type uploads struct {
	under  sync.WaitGroup
	places chan struct{} // of maxUploads
	mu     sync.Mutex
	stored map[int]job.Output // LogKey and Truncated, by the step's index
}

// storeLog sends a spool to the store and closes it, beside what comes next, and returns its key. It waits while
// maxUploads are on their way. It ends with hold: the log of a step that ran out of time is stored, too.
func (x *Executor) storeLog(hold context.Context, index int, name string, s *spool) (key string) {
	if s == nil {
		return ""
	}
	key = fmt.Sprintf("%s%03d-%s.log", x.cfg.Logs.Folder, index+1, slug(name))
	select {
	case x.logs.places <- struct{}{}:
	case <-hold.Done():
		s.close()
		return ""
	}
	x.logs.under.Go(func() {
		defer func() { <-x.logs.places }()
		defer s.close()
		err := panics.Catch(func() error { return putSpool(hold, x.cfg.Logs.Store, key, s) })
		if err != nil {
			x.cfg.Log.Warn("store step's log", zap.String("key", key), zap.Error(err))
			return
		}
		x.logs.mu.Lock()
		defer x.logs.mu.Unlock()
		if x.logs.stored == nil {
			x.logs.stored = map[int]job.Output{}
		}
		x.logs.stored[index] = job.Output{LogKey: key, Truncated: s.lost}
	})
	return key
}

func putSpool(ctx context.Context, store wsync.Store, key string, s *spool) error {
	if s.file == nil {
		return errors.New("no temporary file could be made; see TMPDIR")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, LogTimeout, &verdict.Timeout{What: "the upload of a log", Limit: LogTimeout})
	defer cancel()
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := store.Put(ctx, key, s.file, s.size, wsync.PutOptions{})
	return err
}

// note puts the keys of the stored logs into the results.
func (u *uploads) note(steps []job.StepResult) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range steps {
		if o, ok := u.stored[steps[i].Index]; ok {
			steps[i].Output.LogKey, steps[i].Output.Truncated = o.LogKey, o.Truncated
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
