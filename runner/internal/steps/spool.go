package steps

import "os"

// spool is a temporary file with the beginning of a step's output. It has no
// name while it is open, so that nothing of it outlives the worker (on systems
// that can't do that, close removes it).
type spool struct {
	file *os.File // nil if it could not be made
	room int64
	size int64
	lost int64 // bytes that did not get in
}

func newSpool(limit int64) *spool {
	s := &spool{room: limit}
	f, err := os.CreateTemp("", "slipway-log-*")
	if err != nil {
		return s // the log is lost, and counted: not worth a job
	}
	_ = os.Remove(f.Name()) // fails where open files keep their names; close tries again
	s.file = f
	return s
}

// write takes what still fits.
func (s *spool) write(p []byte) {
	n := 0
	if s.file != nil {
		n, _ = s.file.Write(p[:min(int64(len(p)), s.room)]) // a full disk loses the rest, and is counted
	}
	s.room -= int64(n)
	s.size += int64(n)
	if n < len(p) {
		s.room = 0 // no gap: what is kept is a beginning
		s.lost += int64(len(p) - n)
	}
}

func (s *spool) close() {
	if s == nil || s.file == nil {
		return
	}
	_ = s.file.Close()
	_ = os.Remove(s.file.Name()) // only where an open file keeps its name
}
