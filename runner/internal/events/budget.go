package events

import (
	"bytes"
	"time"

	"slipway/job"
)

// Why output reaches no reader.
const (
	MissedLimit = "limit" // the attempt has used up its budget
	MissedSlow  = "slow"  // it came faster than the queue took it
	MissedQueue = "queue" // the queue did not take it, or the attempt had lost its job
	MissedBox   = "box"   // it did not arrive from the box
)

// texts explain these causes to people, in the Text of an EventDropped. MissedQueue has none: an event about it could not be
// sent either.
var texts = map[string]string{
	MissedLimit: "the job printed more than the live view has room for",
	MissedSlow:  "it came faster than the queue took it",
	MissedBox:   "it did not arrive from the box",
}

// counts are the bytes of output since they were told last.
type counts struct {
	printed int64
	missed  map[string]int64 // by reason
}

func (c *counts) miss(n int64, why string) {
	if n == 0 {
		return
	}
	if c.missed == nil {
		c.missed = map[string]int64{}
	}
	c.missed[why] += n
}

const (
	// tailSize is how much of the end of a step's output is shown after the budget is spent: it mostly says why a step failed.
	tailSize = 16 << 10
	// noticeEvery is how often readers are told that output is left out, while nothing else happens.
	noticeEvery = time.Minute
)

// budget is what the events of one attempt may take in the queue. Output may take three quarters of it. The last quarter is
// for the end of each step's output. All other events are few: they count, and always pass.
type budget struct {
	limit    int64 // 0: none
	taken    int64
	spent    bool // output has to be left out from now on
	tailSize int
	last     time.Time // of the last notice
}

func newBudget(limit int64) budget {
	return budget{limit: limit, tailSize: int(min(tailSize, limit/8))}
}

// admits reports whether there is room for n more bytes of output. Once there was not, there is none for less either: the
// output that a reader sees must not have holes for each large piece.
func (b *budget) admits(n int) bool {
	b.spent = b.spent || b.limit > 0 && b.taken+cost(1, n) > b.limit/4*3
	return !b.spent
}

// take counts so many events with n bytes of data in all.
func (b *budget) take(events, n int) { b.taken += cost(events, n) }

// cost is what events take in the queue, where data is in base64.
func cost(events, n int) int64 { return int64(events*eventWeight + n/3*4 + 4) }

// fits reports whether there is room for the end of a step's output.
func (b *budget) fits(pieces []piece) bool {
	var n int64
	for _, p := range pieces {
		n += cost(1, len(p.data))
	}
	return b.taken+n <= b.limit
}

// noticeDue reports whether it is time to tell again that output is left out.
func (b *budget) noticeDue() bool { return time.Since(b.last) >= noticeEvery }

func (b *budget) noticed() { b.last = time.Now() }

// gap is output that no reader sees.
type gap struct {
	step         int
	bytes, lines int64
	why          string
}

func (g *gap) add(step int, bytes, lines int64, why string) {
	if g.bytes == 0 {
		g.step, g.why = step, why
	}
	g.bytes += bytes
	g.lines += lines
}

func (g gap) event() job.Event {
	return job.Event{Kind: job.EventDropped, Step: g.step, Bytes: g.bytes, Lines: g.lines, Text: texts[g.why]}
}

// tail is the newest output of a step.
type tail struct {
	pieces []piece
	size   int
}

// piece is output of one stream.
type piece struct {
	step   int
	stream string
	data   []byte
}

// add appends a copy of p.
func (t *tail) add(step int, stream string, p []byte) {
	t.size += len(p)
	if n := len(t.pieces); n > 0 && t.pieces[n-1].step == step && t.pieces[n-1].stream == stream {
		t.pieces[n-1].data = append(t.pieces[n-1].data, p...)
		return
	}
	t.pieces = append(t.pieces, piece{step, stream, bytes.Clone(p)})
}

// trim removes and returns up to n bytes of the oldest piece.
func (t *tail) trim(n int) []byte {
	first := &t.pieces[0]
	n = min(n, len(first.data))
	cut := first.data[:n]
	t.size -= n
	if first.data = first.data[n:]; len(first.data) == 0 {
		t.pieces = t.pieces[1:]
	}
	return cut
}

// trimLine removes and returns the rest of a line that began before the oldest piece.
func (t *tail) trimLine() []byte {
	end := bytes.IndexByte(t.pieces[0].data, '\n')
	if end < 0 || end+1 == t.size {
		return nil
	}
	return t.trim(end + 1)
}

// take empties the tail.
func (t *tail) take() []piece {
	pieces := t.pieces
	*t = tail{}
	return pieces
}
