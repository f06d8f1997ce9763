package wsynctest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	wsync "slipway/sync"
)

func (s *suite) createOnly() {
	if _, err := s.put("c", "first", wsync.PutOptions{IfNoneMatch: true}); err != nil {
		s.Fatalf("create: %v", err)
	}
	_, err := s.put("c", "second", wsync.PutOptions{IfNoneMatch: true})
	s.wantErr("create again", err, wsync.ErrPrecondition)
	s.want("c", "first")
}

func (s *suite) swap() {
	old := s.mustPut("s", "old")
	now, err := s.put("s", "new", wsync.PutOptions{IfMatch: old})
	if err != nil {
		s.Fatalf("swap: %v", err)
	}
	_, err = s.put("s", "stale", wsync.PutOptions{IfMatch: old})
	s.wantErr("stale swap", err, wsync.ErrPrecondition)
	s.want("s", "new")
	if _, err = s.put("s", "newer", wsync.PutOptions{IfMatch: now}); err != nil {
		s.Errorf("swap with the returned ETag: %v", err)
	}
	_, err = s.put("absent", "x", wsync.PutOptions{IfMatch: old})
	s.wantErr("swap of what does not exist", err, wsync.ErrPrecondition)
}

// race starts eight conditional puts at once and wants exactly one winner, whose content is there.
func (s *suite) race(key string, opts wsync.PutOptions) string {
	s.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var winners []string
	start := make(chan struct{})
	for i := range 8 {
		wg.Go(func() {
			<-start
			// Never the same twice: an ETag may be a checksum, and then an old one would hold again.
			content := fmt.Sprintf("writer %d of %s", i, rand.Text())
			_, err := s.put(key, content, opts)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				winners = append(winners, content)
			} else if !errors.Is(err, wsync.ErrPrecondition) {
				s.Errorf("race for %s: got error %v, want %v", key, err, wsync.ErrPrecondition)
			}
		})
	}
	close(start)
	wg.Wait()
	if len(winners) != 1 {
		s.Fatalf("race for %s: got winners %q, want one", key, winners)
	}
	s.want(key, winners[0])
	_, o := s.get(key)
	return o.ETag
}

func (s *suite) createRace() {
	for i := range 5 {
		s.race(fmt.Sprint("c", i), wsync.PutOptions{IfNoneMatch: true})
	}
}

func (s *suite) swapRace() {
	etag := s.mustPut("s", "before")
	for range 5 {
		etag = s.race("s", wsync.PutOptions{IfMatch: etag})
	}
}
