package devserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"slipway/internal/devprotocol"
)

// find returns the path of slipway-devserver: the given one, else beside the running program, else in PATH.
func find(given string) (string, error) {
	if given != "" {
		if _, err := exec.LookPath(given); err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoProgram, err)
		}
		return filepath.Abs(given)
	}
	dir := "(unknown)"
	if self, err := os.Executable(); err == nil {
		dir = filepath.Dir(self)
		path, err := exec.LookPath(filepath.Join(dir, devprotocol.Program)) // looks for .exe too
		if err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(devprotocol.Program)
	if err != nil {
		return "", fmt.Errorf("%w: it is neither in %s, where the running program is, nor in PATH", ErrNoProgram, dir)
	}
	return filepath.Abs(path)
}

// launch starts the child, and returns what it reports on.
func (s *Servers) launch(program string, set devprotocol.Settings, log io.Writer) (report *os.File, err error) {
	input, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	report, reportTo, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "--child") //nolint:noctx // it outlives the context of the start; Close ends it
	// Nothing else of the environment: it may hold secrets, which these servers have no use for.
	cmd.Env = []string{"TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = devprotocol.CloseTime
	cmd.ExtraFiles = []*os.File{reportTo}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = s.run(cmd)
	}
	reportTo.Close()
	if err != nil {
		report.Close()
		return nil, err
	}
	s.stdin, s.kill = stdin, cmd.Process.Kill
	stdin.Write(append(input, '\n')) //nolint:errcheck // a child that does not read has ended, which its report shows
	return report, nil
}

// logKept is how much of the end of the child's output is kept for an error message, in bytes.
const logKept = 8 << 10

// tail passes output on, and keeps the end of it.
type tail struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	next io.Writer
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - logKept; over > 0 {
		t.buf.Next(over)
	}
	if t.next != nil {
		return t.next.Write(b)
	}
	return len(b), nil
}

// String is the end of the output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(t.buf.String()); text != "" {
		return text
	}
	return "it printed nothing"
}
