package supervisor

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

// A caller whose command has failed finds the session over: it must not start another one in it. While so many wait, the
// first of them runs before the last one is woken.
func TestOverBeforeCommandsFail(t *testing.T) {
	for range 5 {
		s, p := connect(t)
		var calls sync.WaitGroup
		var early atomic.Int32
		for range wire.MaxStreams {
			calls.Go(func() {
				_, err := s.Exec(t.Context(), command())
				if !errors.Is(err, container.ErrStopped) {
					t.Errorf("a command: got %v, want ErrStopped", err)
				}
				select {
				case <-s.Done():
				default:
					early.Add(1)
				}
			})
		}
		for range wire.MaxStreams {
			<-p.opened
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		calls.Wait()
		if n := early.Load(); n > 0 {
			t.Fatalf("%d of %d callers found the session alive after their command had failed, want none", n, wire.MaxStreams)
		}
	}
}
