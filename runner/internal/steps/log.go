package steps

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"slipway/job"
	"slipway/runner/internal/excerpt"
)

// longLine is how far from the edges of the gap a line end is looked for. A gap within a longer line is cut between two
// characters.
const longLine = 64 << 10

// log is what a spool has for the store: all output, or its beginning, a line that tells of the gap, and its end.
type log struct {
	parts parts
	size  int64
	kept  int64 // bytes that the step printed
	// The gap, if bytes is not 0.
	gapAt, gapBytes, gapLines int64
}

// finish makes the log. The spool takes no more output, and stays open as long as the log is read.
func (s *spool) finish() (*log, error) {
	if s.file == nil {
		return nil, errors.New("no temporary file could be made; see TMPDIR")
	}
	head := parts{{s.file, 0, s.head}}
	ring := s.ringParts()
	if s.whole() {
		return newLog(append(head, ring...)), nil
	}
	if s.broken { // what there is has no gap before its end
		head, ring = append(head, ring...), nil
	}
	keep, lineEnd, err := head.lastLineEnd()
	if err != nil {
		return nil, err
	}
	from, err := ring.firstLine()
	if err != nil {
		return nil, err
	}
	before, after := head.section(0, keep), ring.section(from, ring.size()-from)
	lines := s.lines
	for _, p := range []parts{before, after} {
		n, err := p.lineEnds()
		if err != nil {
			return nil, err
		}
		lines -= n
	}
	gap := s.total - before.size() - after.size()
	return before.around(after, gap, lines, lineEnd), nil
}

// ringParts is what the ring holds, from the oldest byte to the newest.
func (s *spool) ringParts() parts {
	if s.ring <= s.ringSize {
		return parts{{s.file, s.headSize, s.ring}}
	}
	oldest := s.ring % s.ringSize
	return parts{{s.file, s.headSize + oldest, s.ringSize - oldest}, {s.file, s.headSize, oldest}}
}

func newLog(p parts) *log { return &log{parts: p, size: p.size(), kept: p.size()} }

// around is the log of p and after with a gap between them. lineEnd says that p ends with one.
func (p parts) around(after parts, gap, lines int64, lineEnd bool) *log {
	text := job.LogGap(gap, lines)
	if !lineEnd {
		text = "\n" + text
	}
	all := append(append(append(parts{}, p...), part{strings.NewReader(text), 0, int64(len(text))}), after...)
	return &log{
		parts: all, size: all.size(), kept: p.size() + after.size(),
		gapAt: p.size(), gapBytes: gap, gapLines: lines,
	}
}

// reader reads the log.
func (l *log) reader() io.ReadSeeker { return io.NewSectionReader(l.parts, 0, l.size) }

// parts are pieces of files, one after the other.
type parts []part

type part struct {
	from io.ReaderAt
	off  int64
	size int64
}

func (p parts) size() (n int64) {
	for _, one := range p {
		n += one.size
	}
	return n
}

// ReadAt reads as one file.
func (p parts) ReadAt(b []byte, off int64) (n int, err error) {
	for _, one := range p {
		if off >= one.size {
			off -= one.size
			continue
		}
		want := min(int64(len(b)-n), one.size-off)
		got, err := one.from.ReadAt(b[n:n+int(want)], one.off+off)
		n += got
		if int64(got) < want {
			return n, fmt.Errorf("read a temporary file: %w", err)
		}
		if off = 0; n == len(b) {
			return n, nil
		}
	}
	if n == len(b) {
		return n, nil
	}
	return n, io.EOF
}

// section is n bytes of p, from off.
func (p parts) section(off, n int64) parts {
	var out parts
	for _, one := range p {
		if size := min(one.size-off, n); size > 0 {
			out = append(out, part{one.from, one.off + max(off, 0), size})
			n -= size
		}
		off = max(off-one.size, 0)
	}
	return out
}

// lastLineEnd returns how much of p ends with a whole line, or at least with a whole character.
func (p parts) lastLineEnd() (n int64, lineEnd bool, err error) {
	size := p.size()
	b := make([]byte, min((size+1)/2, longLine))
	if _, err := p.ReadAt(b, size-int64(len(b))); err != nil {
		return 0, false, err
	}
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		return size - int64(len(b)-i-1), true, nil
	}
	whole := int64(len(excerpt.WholeRunes(b)))
	keep := size - int64(len(b)) + whole
	return keep, keep == 0, nil
}

// firstLine returns where the first line begins, or at least the first character.
func (p parts) firstLine() (int64, error) {
	b := make([]byte, min(p.size()/2, longLine))
	if _, err := p.ReadAt(b, 0); err != nil {
		return 0, err
	}
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return int64(i) + 1, nil
	}
	return int64(len(b) - len(excerpt.SkipPart(b))), nil
}

func (p parts) lineEnds() (int64, error) {
	r := io.NewSectionReader(p, 0, p.size())
	b := make([]byte, 64<<10)
	var lines int64
	for {
		n, err := r.Read(b)
		lines += excerpt.LineEnds(b[:n])
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
