package joblog

import (
	"bytes"

	"slipway/job"
)

// Tail holds back what it gets, and at Flush passes on the last lines of output with everything between and after them. A
// line is counted where it ends; a last one without an end counts, too.
type Tail struct {
	to    Sink
	keep  int
	items []item
	lines int                // line ends in items
	names map[int]*job.Event // the starts of steps that were given up
	cut   bool               // something was given up
}

// item is an event or a remark.
type item struct {
	event job.Event
	note  func()
	lines int
}

// NewTail makes a Tail of n lines.
func NewTail(n int, to Sink) *Tail { return &Tail{to: to, keep: n, names: map[int]*job.Event{}} }

// Event holds e.
func (t *Tail) Event(e job.Event) {
	it := item{event: e, lines: bytes.Count(e.Data, []byte{'\n'})}
	t.items = append(t.items, it)
	t.lines += it.lines
	for len(t.items) > 0 && t.lines-t.items[0].lines > t.keep {
		t.drop()
	}
}

// Note holds a remark.
func (t *Tail) Note(format string, args ...any) {
	t.items = append(t.items, item{note: func() { t.to.Note(format, args...) }})
}

func (t *Tail) drop() {
	first := t.items[0]
	t.items, t.lines, t.cut = t.items[1:], t.lines-first.lines, true
	if first.event.Kind == job.EventStepStart {
		t.names[first.event.Step] = &first.event
	}
}

// Flush passes on the tail, and reports whether output is missing in it.
func (t *Tail) Flush() (missing bool) {
	t.countOpenLine()
	over := t.lines - t.keep
	for len(t.items) > 0 && over > 0 && t.items[0].lines <= over {
		over -= t.items[0].lines
		t.drop()
	}
	for t.cut && len(t.items) > 0 && t.items[0].note == nil && t.items[0].event.Kind != job.EventOutput {
		t.drop() // it is about what came before
	}
	named := !t.cut
	for _, it := range t.items {
		if it.note != nil {
			missing = true // Show notes nothing but gaps before it flushes
			it.note()
			continue
		}
		e := it.event
		missing = missing || e.Kind == job.EventDropped
		if e.Kind == job.EventOutput && over > 0 {
			e.Data, over = skipLines(e.Data, over), 0
		}
		if e.Kind == job.EventOutput && len(e.Data) == 0 {
			continue
		}
		if _, ok := stepOf(e, e.Step); ok && !named {
			named = true
			if start := t.names[e.Step]; start != nil && e.Kind != job.EventStepStart {
				t.to.Event(*start)
			}
		}
		t.to.Event(e)
	}
	t.items, t.lines = nil, 0
	return missing
}

// countOpenLine counts a last line without an end.
func (t *Tail) countOpenLine() {
	for i := len(t.items) - 1; i >= 0; i-- {
		if data := t.items[i].event.Data; len(data) > 0 {
			if data[len(data)-1] != '\n' {
				t.items[i].lines++
				t.lines++
			}
			return
		}
	}
}

// skipLines removes n lines from the beginning of p.
func skipLines(p []byte, n int) []byte {
	for ; n > 0; n-- {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			return nil
		}
		p = p[i+1:]
	}
	return p
}
