package runner

import (
	"os"
	"strings"
	"sync"
)

// host says on which machine, and since which of its starts, a worker runs.
type host struct{ name, boot string }

// thisHost asks the system. What it can't tell stays empty: both are labels for
// people and reapers, nothing depends on them.
func thisHost() host {
	var h host
	h.name, _ = os.Hostname()
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		h.boot = strings.TrimSpace(string(boot))
	}
	return h
}

// liveBoxes are the names of the boxes that attempts of this worker own.
type liveBoxes struct {
	mu    sync.Mutex
	names map[string]bool
}

func (l *liveBoxes) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = map[string]bool{}
	}
	l.names[name] = true
}

func (l *liveBoxes) remove(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
}

func (l *liveBoxes) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[name]
}
