package runner

import (
	"strings"
	"unicode/utf8"

	"slipway/container"
	"slipway/job"
)

// output takes what one try of a step prints. It is used from one goroutine.
type output struct {
	step    int
	excerpt excerpt
	log     *spool // nil until the excerpt has to leave something out
	limit   int64  // of the log; 0: no log is kept
	events  *events
}

// write takes one piece. It never waits for a reader.
func (o *output) write(s container.Stream, p []byte) {
	if o.limit > 0 && o.log == nil && o.excerpt.overflows(len(p)) {
		o.log = newSpool(o.limit)
		o.log.write(o.excerpt.whole())
	}
	if o.log != nil {
		o.log.write(p)
	}
	o.excerpt.write(p)
	o.events.output(o.step, s.String(), p)
}

// stdout makes o an io.Writer, for what a file action prints.
type stdout struct{ o *output }

func (w stdout) Write(p []byte) (int, error) {
	w.o.write(container.Stdout, p)
	return len(p), nil
}

// excerpt keeps the first and the last size bytes of a stream, in bounded memory.
type excerpt struct {
	size  int
	head  []byte
	tail  []byte // at least the last size bytes of what came after head
	total int64
}

// write takes p.
func (e *excerpt) write(p []byte) {
	e.total += int64(len(p))
	if room := e.size - len(e.head); room > 0 {
		n := min(room, len(p))
		e.head = append(e.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > e.size {
		p = p[len(p)-e.size:]
	}
	e.tail = append(e.tail, p...)
	if len(e.tail) > 2*e.size {
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-e.size:]...)
	}
}

// overflows reports whether n more bytes make the excerpt leave something out.
func (e *excerpt) overflows(n int) bool { return e.total+int64(n) > int64(2*e.size) }

// whole returns everything so far. Only before the first overflow.
func (e *excerpt) whole() []byte { return append(append([]byte(nil), e.head...), e.tail...) }

// output returns the excerpt as valid UTF-8, cut at the edges of characters.
// Head and Tail each take at most twice size bytes of JSON, however much of them must be escaped.
func (e *excerpt) output() job.Output {
	o := job.Output{Bytes: e.total}
	head, tail := e.head, e.tail
	budget := 2 * e.size
	if !e.overflows(0) {
		all := e.whole()
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
	head = wholeRunes(fitPrefix(head, budget))
	if tail == nil {
		tail = whole[len(head):]
	}
	tail = fitSuffix(skipPart(tail), budget)
	o.Head, o.Tail = valid(head), valid(tail)
	o.Elided = e.total - int64(len(head)) - int64(len(tail))
	return o
}

func valid(p []byte) string { return strings.ToValidUTF8(string(p), "\uFFFD") }

// wholeRunes cuts off the beginning of a character at the end of p.
func wholeRunes(p []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(p)); i++ {
		if rest := p[len(p)-i:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				return p[:len(p)-i]
			}
			break
		}
	}
	return p
}

// skipPart cuts off the end of a character at the beginning of p: up to three bytes.
func skipPart(p []byte) []byte {
	for i := range utf8.UTFMax {
		if i == len(p) || utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p
}

// fitPrefix returns the longest prefix of p that takes at most budget bytes of JSON.
func fitPrefix(p []byte, budget int) []byte {
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		if budget -= jsonLen(r, n); budget < 0 {
			return p[:i]
		}
		i += n
	}
	return p
}

// fitSuffix returns the longest suffix of p that takes at most budget bytes of JSON.
func fitSuffix(p []byte, budget int) []byte {
	for i := len(p); i > 0; {
		r, n := utf8.DecodeLastRune(p[:i])
		if budget -= jsonLen(r, n); budget < 0 {
			return p[i:]
		}
		i -= n
	}
	return p
}

// jsonLen is how many bytes encoding/json makes of a rune of n bytes.
func jsonLen(r rune, n int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
		return 6
	}
	return n
}
