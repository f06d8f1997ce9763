//go:build linux

package step

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/test/eventually"
)

func TestPool(t *testing.T) {
	r := setup(t)
	r.Fill()
	r.Fill()
	if len(r.idle) != 1 {
		t.Fatalf("after two calls of Fill: got %d idle processes, want 1", len(r.idle))
	}
	spare := r.idle[0]
	if got := r.take(); got != spare || !r.Owns(spare.pid) || r.Owns(os.Getpid()) {
		t.Errorf("Take: got another process than the spare one, or Owns is wrong")
	}
	all := []*Proc{spare}
	for range spares {
		all = append(all, r.take())
	}
	for _, p := range all {
		r.Give(p)
	}
	if len(r.idle) != spares || !slices.Equal(r.idle, all[:spares]) {
		t.Errorf("after %d calls of Give: got %d idle processes, want %d", len(all), len(r.idle), spares)
	}
	last := all[len(all)-1]
	ends(t, last)
	if r.Owns(last.pid) {
		t.Error("Owns is true for a process that was given up")
	}
	r.Close()
	for range spares {
		r.Drop(r.take()) // idle ones may still be taken
	}
	if p, err := r.Take(); !errors.Is(err, errClosed) {
		t.Errorf("Take of a closed pool: got %v, %v; want %v", p, err, errClosed)
	}
	if r.Fill(); len(r.idle) != 0 {
		t.Error("Fill of a closed pool has started a process")
	}
}

// A spare process that has died is not handed out, nor one that died before it was given back, and its fate is known.
func TestPoolOfTheDead(t *testing.T) {
	r := setup(t)
	spare, used := r.take(), r.take()
	r.Give(spare)
	killed := func(s *Proc) {
		s.Kill()
		var status unix.WaitStatus
		if _, err := unix.Wait4(s.pid, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
		if _, known := s.Fate(0); known {
			t.Error("the fate of a process is known before it was told")
		}
		r.Ended(s.pid, syscall.WaitStatus(status))
		if got, known := s.Fate(eventually.Patience); !known || got.Signal() != unix.SIGKILL {
			t.Errorf("Fate: got %v, %t; want the signal that ended it", got, known)
		}
	}
	killed(spare)
	killed(used)
	r.Give(used)
	if len(r.idle) != 0 || r.Owns(spare.pid) || r.Owns(used.pid) {
		t.Errorf("got %d idle processes, want none: both are dead", len(r.idle))
	}
	if err := spare.Start(r.command("true"), [3]int{0, 1, 2}); err == nil {
		t.Error("Start of a dead process: got no error")
	}
	r.Ended(os.Getpid(), 0) // another child than a step process
}

// Many at once: no exit is lost or mixed up.
func TestManyAtOnce(t *testing.T) {
	r := setup(t)
	type result struct{ got, want int }
	results := make(chan result)
	slots := make(chan struct{}, 8)
	const n = 100
	for i := range n {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			proc, err := r.Take()
			if err != nil {
				results <- result{-1, i}
				return
			}
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err == nil {
				fd := int(null.Fd())
				err = proc.Start(r.command("exit "+strconv.Itoa(i)), [3]int{fd, fd, fd})
				_ = null.Close()
			}
			x, werr := proc.Wait(func() {})
			r.Give(proc)
			if err != nil || werr != nil || x.TimedOut {
				x.Code = -1
			}
			results <- result{x.Code, i}
		}()
	}
	for range n {
		if got := <-results; got.got != got.want {
			t.Errorf("got code %d, want %d", got.got, got.want)
		}
	}
}

// A file that the box forgot to close at exec does not reach a command.
func TestInheritsNothing(t *testing.T) {
	r := setup(t)
	secret := filepath.Join(t.TempDir(), "secret")
	fd, err := unix.Open(secret, unix.O_CREAT|unix.O_RDWR, 0o600) // without close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	proc := r.take()
	defer r.Drop(proc)
	s := r.start(proc, r.command("ls -l /proc/self/fd"))
	if s.end(); strings.Contains(s.output(), secret) {
		t.Errorf("got the open files\n%s\nwant none of the box among them", s.output())
	}
}
