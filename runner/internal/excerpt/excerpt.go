package excerpt

import (
	"slipway/job"
)

// Excerpt keeps the first and the last bytes of a stream, in bounded memory: at most about four times its size. New
// makes one. It is used from one goroutine.
type Excerpt struct {
	size  int
	head  []byte
	tail  []byte // at least the last size bytes of what came after head
	total int64
}

// New makes an Excerpt that keeps size bytes of the head, and as many of the tail.
func New(size int) *Excerpt { return &Excerpt{size: size} }

// Write takes p.
func (e *Excerpt) Write(p []byte) {
	e.total += int64(len(p))
	if room := e.size - len(e.head); room > 0 {
		n := min(room, len(p))
		e.head = append(e.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > e.size { // before it is copied: a piece can be large
		p = p[len(p)-e.size:]
	}
	e.tail = append(e.tail, p...)
	if len(e.tail) > 2*e.size {
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-e.size:]...)
	}
}

// Total is how many bytes were written.
func (e *Excerpt) Total() int64 { return e.total }

// Overflows reports whether n more bytes make the excerpt leave something out.
func (e *Excerpt) Overflows(n int) bool { return e.total+int64(n) > int64(2*e.size) }

// Whole returns everything so far. Call it only before the first overflow.
func (e *Excerpt) Whole() []byte { return append(append([]byte(nil), e.head...), e.tail...) }

// Output returns the excerpt as valid UTF-8, cut at the edges of characters.
// Head and Tail each take at most twice size bytes of JSON, however much of them must be escaped.
func (e *Excerpt) Output() job.Output {
	o := job.Output{Bytes: e.total}
	head, tail := e.head, e.tail
	budget := 2 * e.size
	if !e.Overflows(0) {
		all := e.Whole()
		if prefix := fitPrefix(all, 2*budget); len(prefix) == len(all) {
			o.Head = valid(all)
			return o
		}
		head, tail = all, nil
	}
	if len(tail) > e.size {
		tail = tail[len(tail)-e.size:]
	}
	whole := head
	head = WholeRunes(fitPrefix(head, budget))
	if tail == nil {
		tail = whole[len(head):]
	}
	tail = fitSuffix(SkipPart(tail), budget)
	o.Head, o.Tail = valid(head), valid(tail)
	o.Elided = e.total - int64(len(head)) - int64(len(tail))
	return o
}
