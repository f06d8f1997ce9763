package steps

import (
	"os"

	"slipway/runner/internal/excerpt"
)

// spool is a temporary file with a step's output: all of it, or the beginning and the end. The file has up to limit bytes:
// the head, and behind it a ring, in which the newest bytes take the place of the oldest ones. It has no name while it is
// open, so that nothing of it outlives the worker (on systems that can't do that, close removes it).
type spool struct {
	file     *os.File // nil if it could not be made
	headSize int64
	ringSize int64

	head      int64 // bytes in the head
	headLines int64 // line ends among them
	ring      int64 // bytes that went into the ring so far, also those that were replaced
	total     int64 // bytes that the step printed
	lines     int64 // line ends among them
	broken    bool  // the file takes no more: what is kept is a beginning
}

func newSpool(limit int64) *spool {
	s := &spool{headSize: limit / 2, ringSize: limit - limit/2}
	f, err := os.CreateTemp("", "slipway-log-*")
	if err != nil {
		s.broken = true // the log is lost, and counted: not worth a job
		return s
	}
	_ = os.Remove(f.Name()) // fails where open files keep their names; close tries again
	s.file = f
	return s
}

// write takes p.
func (s *spool) write(p []byte) {
	s.total += int64(len(p))
	s.lines += excerpt.LineEnds(p)
	if s.broken {
		return
	}
	if n := min(int64(len(p)), s.headSize-s.head); n > 0 {
		done := s.put(p[:n], s.head)
		s.head += done
		s.headLines += excerpt.LineEnds(p[:done])
		p = p[n:]
	}
	skip := max(0, int64(len(p))-s.ringSize)
	if !s.broken {
		s.ring += skip
		p = p[skip:]
	}
	for len(p) > 0 && !s.broken {
		at := s.ring % s.ringSize
		n := min(int64(len(p)), s.ringSize-at)
		s.ring += s.put(p[:n], s.headSize+at)
		p = p[n:]
	}
	if s.broken && (s.ring > s.ringSize || skip > 0) {
		s.ring = 0 // old and new bytes are mixed in the ring, or some were never written
	}
}

// put writes p to the file at off and returns how much of it is there. A full disk breaks the spool.
func (s *spool) put(p []byte, off int64) (done int64) {
	n, err := s.file.WriteAt(p, off)
	s.broken = err != nil
	return int64(n)
}

// whole reports whether the file has all that was printed.
func (s *spool) whole() bool { return s.total == s.head+s.ring && s.ring <= s.ringSize }

func (s *spool) close() {
	if s == nil || s.file == nil {
		return
	}
	_ = s.file.Close()
	_ = os.Remove(s.file.Name()) // only where an open file keeps its name
}
