package local

import "sync"

// stderrKept bounds what is kept of a supervisor's last words.
const stderrKept = 4 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > stderrKept {
		t.b = append([]byte(nil), t.b[len(t.b)-stderrKept:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
