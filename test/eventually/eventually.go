// Package eventually waits in tests for something that another process or a server
// does and doesn't announce, so that the test must ask again and again. A test waits for
// its own process by channels, or under testing/synctest.
package eventually

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

const (
	// Settled is how long a shell gets on a busy machine until it has set its traps and printed.
	Settled = 2 * time.Second
	// Patience is the time after which something hangs, and is no longer just slow. It is less than a box's dead-man switch, which would hide a hang.
	Patience = 10 * time.Second
)

// True fails t unless ok returns true within the bound, which should be generous. It asks
// every 10 ms. The failure quotes what, the condition in words. Call it from the test's own
// goroutine.
func True(t testing.TB, bound time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(bound); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", bound, what)
		}
	}
}

// Doubling calls try with a time, at first Settled and then each time twice as much, until try returns true. It is for
// a test in which a command's own clock runs while the command gets ready: try returns false if the command
// was not ready before its time was over, as on a machine that is too busy. Doubling fails t after six tries.
func Doubling(t testing.TB, what string, try func(limit time.Duration) (ready bool)) {
	t.Helper()
	limit := Settled
	for range 6 {
		if try(limit) {
			return
		}
		t.Logf("%s: not ready within %v", what, limit)
		limit *= 2
	}
	t.Fatalf("not within %v: %s", limit/2, what)
}

// Buffer collects a program's output while a test reads it. Its zero value is
// ready, and it is safe for concurrent use.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Reset forgets what was written.
func (b *Buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}
