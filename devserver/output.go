package devserver

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// logKept is how much of the end of a child's output is kept for an error message, in bytes.
const logKept = 8 << 10

// tail passes output on, and keeps the end of it.
type tail struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	next io.Writer
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - logKept; over > 0 {
		t.buf.Next(over)
	}
	return t.next.Write(b)
}

// String is the end of the output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(t.buf.String()); text != "" {
		return text
	}
	return "it printed nothing"
}

// serial passes the output of several children on, one write after the other.
type serial struct {
	mu   sync.Mutex
	next io.Writer // nil: nobody
}

// Write implements io.Writer.
func (s *serial) Write(b []byte) (int, error) {
	if s.next == nil {
		return len(b), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next.Write(b)
}
