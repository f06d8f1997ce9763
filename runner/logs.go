package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/job"
	wsync "slipway/sync"
)

// logTimeout bounds the upload of one step's log.
const logTimeout = 2 * time.Minute

// spool is a temporary file with the beginning of a step's output. It has no
// name while it is open, so that nothing of it outlives the worker (on systems
// that can't do that, close removes it).
type spool struct {
	file *os.File // nil if it could not be made
	room int64
	size int64
	lost int64 // bytes that did not get in
}

func newSpool(limit int64) *spool {
	s := &spool{room: limit}
	f, err := os.CreateTemp("", "slipway-log-*")
	if err != nil {
		return s // the log is lost, and counted: not worth a job
	}
	_ = os.Remove(f.Name()) // fails where open files keep their names; close tries again
	s.file = f
	return s
}

// write takes what still fits.
func (s *spool) write(p []byte) {
	n := 0
	if s.file != nil {
		n, _ = s.file.Write(p[:min(int64(len(p)), s.room)]) // a full disk loses the rest, and is counted
	}
	s.room -= int64(n)
	s.size += int64(n)
	if n < len(p) {
		s.room = 0 // no gap: what is kept is a beginning
		s.lost += int64(len(p) - n)
	}
}

func (s *spool) close() {
	if s == nil || s.file == nil {
		return
	}
	_ = s.file.Close()
	if err := os.Remove(s.file.Name()); err == nil || errors.Is(err, os.ErrNotExist) {
		return
	}
}

// logs stores the full logs of steps, beside the steps that come after.
type logs struct {
	uploads sync.WaitGroup
	mu      sync.Mutex
	stored  map[int]job.Output // LogKey and Truncated, by the step's index
}

// storeLog sends a spool to the store. It closes it.
func (a *attempt) storeLog(holdCtx context.Context, index int, name string, s *spool) {
	if s == nil {
		return
	}
	key := fmt.Sprintf("%slogs/%s/%s/%d-%d/%03d-%s.log",
		a.w.cfg.Prefix, a.d.Queue, a.d.ID, a.d.Generation, a.d.Fence, index+1, slug(name))
	a.logs.uploads.Go(func() {
		defer s.close()
		err := recovered(func() error { return putSpool(holdCtx, a.w.cfg.Store, key, s) })
		if err != nil {
			a.log.Warn("store step's log", zap.String("key", key), zap.Error(err))
			return
		}
		a.logs.mu.Lock()
		defer a.logs.mu.Unlock()
		if a.logs.stored == nil {
			a.logs.stored = map[int]job.Output{}
		}
		a.logs.stored[index] = job.Output{LogKey: key, Truncated: s.lost}
	})
}

func putSpool(ctx context.Context, store wsync.Store, key string, s *spool) error {
	if s.file == nil {
		return errors.New("no temporary file could be made; see TMPDIR")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, logTimeout, &timeoutError{"the upload of a log", logTimeout})
	defer cancel()
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := store.Put(ctx, key, s.file, s.size, wsync.PutOptions{})
	return err
}

// wait waits for the uploads and notes the keys in the result.
func (l *logs) wait(r *job.Result) {
	l.uploads.Wait()
	for i := range r.Steps {
		if o, ok := l.stored[r.Steps[i].Index]; ok {
			r.Steps[i].Output.LogKey, r.Steps[i].Output.Truncated = o.LogKey, o.Truncated
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
