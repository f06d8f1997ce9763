package wsynctest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	wsync "slipway/sync"

	"slipway/internal/pause"
)

// Op is an operation of a store.
type Op string

// The operations.
const (
	OpGet       Op = "get"
	OpGetRange  Op = "get range"
	OpPut       Op = "put"
	OpPutStream Op = "put stream"
	OpDelete    Op = "delete"
	OpList      Op = "list"
)

// Fault is what a call suffers. All of its fields may be set; they act in the order in which they are listed.
type Fault struct {
	// Op that suffers it; empty: any.
	Op Op
	// Key is a part of the key that suffers it; empty: any.
	Key string
	// Times is how many calls suffer it. Default 1.
	Times int

	// Run is called before anything else.
	Run func()
	// Delay passes first, or the context ends.
	Delay time.Duration
	// Err is returned, and the call does nothing.
	Err error
	// Body replaces what a get yields; the object's stated size stays.
	Body func([]byte) []byte
	// Cut breaks the body off with an error after so many bytes. 0: not at all.
	Cut int
	// Lost is returned although the call took effect: the reply didn't arrive.
	Lost error
}

// ErrInjected is an ErrUnavailable such as a 503 gives.
var ErrInjected = fmt.Errorf("injected: %w", wsync.ErrUnavailable)

// Inject adds a fault. Faults that match the same call act one call each, in the order in which they were injected.
func (s *Store) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults forgets all faults.
func (s *Store) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (f *Fault) matches(op Op, key string) bool {
	return (f.Op == "" || f.Op == op) && strings.Contains(key, f.Key)
}

func (f *Fault) before(ctx context.Context) error {
	if f == nil {
		return nil
	}
	if f.Run != nil {
		f.Run()
	}
	if f.Delay > 0 && !pause.For(ctx, f.Delay) {
		return fmt.Errorf("%w: %w", wsync.ErrUnavailable, context.Cause(ctx))
	}
	return f.Err
}

func (f *Fault) after() error {
	if f == nil {
		return nil
	}
	return f.Lost
}

func (f *Fault) body(data []byte) []byte {
	if f == nil || f.Body == nil {
		return data
	}
	return f.Body(bytes.Clone(data))
}

func (f *Fault) reader(data []byte) io.ReadCloser {
	if f == nil || f.Cut == 0 {
		return io.NopCloser(bytes.NewReader(data))
	}
	return io.NopCloser(io.MultiReader(bytes.NewReader(data[:min(f.Cut, len(data))]), broken{}))
}

// broken is a connection that was reset.
type broken struct{}

func (broken) Read([]byte) (int, error) {
	return 0, fmt.Errorf("connection reset: %w", io.ErrUnexpectedEOF)
}
