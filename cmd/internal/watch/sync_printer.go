package watch

import (
	"sync"

	"slipway/cmd/internal/display"
	"slipway/job"
)

// syncPrinter lets two goroutines share a Printer.
type syncPrinter struct {
	mu sync.Mutex
	display.Printer
}

func (p *syncPrinter) Submitted(j *job.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Printer.Submitted(j)
}

func (p *syncPrinter) Note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Printer.Note(format, args...)
}

func (p *syncPrinter) Event(e job.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Printer.Event(e)
}

func (p *syncPrinter) Result(r *job.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Printer.Result(r)
}
