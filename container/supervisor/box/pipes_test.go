//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/container/supervisor/internal/wire"
	"slipway/test/eventually"
)

// streams are both ends of one stream of a connection.
func streams(t *testing.T) (worker, box *wire.Stream) {
	t.Helper()
	// No net.Pipe: package net brings C, with which a box can't shield itself.
	toBox, fromWorker := io.Pipe()
	toWorker, fromBox := io.Pipe()
	wm, bm := wire.NewMux(fromWorker), wire.NewMux(fromBox)
	accepted := make(chan *wire.Stream, 1)
	var pumps sync.WaitGroup
	pump := func(conn io.Reader, m *wire.Mux) {
		for {
			f, err := wire.ReadFrame(conn, wire.Alloc)
			if err != nil {
				m.Fail(err)
				return
			}
			if f.Type == wire.Open {
				s, err := m.Accept(f.ID)
				if err != nil {
					m.Fail(err)
					return
				}
				accepted <- s
				continue
			}
			if err := m.Dispatch(f); err != nil {
				m.Fail(err)
				return
			}
		}
	}
	pumps.Go(func() { pump(toBox, bm) })
	pumps.Go(func() { pump(toWorker, wm) })
	t.Cleanup(func() {
		_, _ = fromWorker.Close(), fromBox.Close()
		pumps.Wait()
	})
	worker, err := wm.Open(byte(wire.KindExec), nil)
	if err != nil {
		t.Fatal(err)
	}
	return worker, <-accepted
}

func newPipes(t *testing.T, stdin bool) *pipes {
	t.Helper()
	p, err := openPipes(stdin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// A command gets blocking files, as programs expect, and this process ones that never hold up a thread.
func TestOpenPipes(t *testing.T) {
	p := newPipes(t, true)
	for i, fd := range p.child {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("file %d of the command: flags %x, %v; want it blocking", i, flags, err)
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("file %d of the command: %x, %v; want it closed in the box's other children", i, flags, err)
		}
	}
	stdout := p.child[1]
	go func() { _, _ = unix.Write(stdout, []byte("out")) }()
	b := make([]byte, 8)
	if n, err := p.out.file.Read(b); err != nil || string(b[:n]) != "out" {
		t.Errorf("stdout: got %q, %v", b[:n], err)
	}
	p.closeChild()
	if n, err := p.err.file.Read(b); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("stderr without a writer: got %d bytes, %v; want its end", n, err)
	}
	p = newPipes(t, false)
	if n, err := unix.Read(p.child[0], b); n != 0 || err != nil {
		t.Errorf("stdin of a command without one: got %d bytes, %v; want its end", n, err)
	}
}

// What a command does not read of its stdin is taken off the stream all the same, so that the worker is not held up.
func TestFeedOfDeafCommand(t *testing.T) {
	worker, box := streams(t)
	p := newPipes(t, true)
	p.closeChild() // nobody reads
	fed := make(chan struct{})
	go func() { p.feed(box); close(fed) }()
	sent := make(chan error, 1)
	go func() {
		_, err := worker.Write(make([]byte, 8*wire.Window))
		sent <- errors.Join(err, worker.CloseWrite())
	}()
	select {
	case err := <-sent:
		if err != nil {
			t.Errorf("send: %v", err)
		}
	case <-time.After(eventually.Patience):
		t.Fatal("the worker is held up by a command that does not read")
	}
	<-fed
}

// finished waits for p.finish and returns how long it took.
func finished(t *testing.T, p *pipes, copied <-chan struct{}) time.Duration {
	t.Helper()
	begin := time.Now()
	done := make(chan struct{})
	go func() { p.finish(copied); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * eventually.Patience):
		t.Fatalf("finish is not over after %v", 2*eventually.Patience)
	}
	return time.Since(begin)
}

// A process outside of the tree that holds a pipe is not waited for.
func TestFinishWithForeignHolder(t *testing.T) {
	worker, box := streams(t)
	p := newPipes(t, false)
	held, err := unix.Dup(p.child[1])
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(held)
	if _, err := unix.Write(held, []byte("said before")); err != nil {
		t.Fatal(err)
	}
	copied := p.copyAll(box)
	p.closeChild()
	finished(t, p, copied)
	if _, b, err := worker.Next(); err != nil || string(b) != "said before" {
		t.Errorf("got %q, %v; want what was printed before", b, err)
	}
}

// A worker that reads slowly gets all of the output, however long it takes: that is no foreign holder.
func TestFinishWithSlowWorker(t *testing.T) {
	worker, box := streams(t)
	p := newPipes(t, false)
	copied := p.copyAll(box)
	const size = wire.Window + 48<<10 // what the stream takes without a reader, and less than a pipe holds
	want := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer p.closeChild()
		for b := want; len(b) > 0; {
			n, err := unix.Write(p.child[1], b[:min(len(b), 4096)])
			if err != nil {
				return
			}
			b = b[n:]
		}
	}()
	var got []byte
	read := make(chan struct{})
	go func() {
		defer close(read)
		<-time.After(500 * time.Millisecond) // several times what a quiet pipe gets
		for {
			_, b, err := worker.Next()
			if err != nil {
				return
			}
			got = append(got, b...)
		}
	}()
	<-written
	finished(t, p, copied)
	if err := box.End(nil); err != nil {
		t.Fatal(err)
	}
	<-read
	if !bytes.Equal(got, want) || p.out.count.Load() != int64(len(want)) {
		t.Errorf("got %d bytes, counted %d; want %d", len(got), p.out.count.Load(), len(want))
	}
}

// When nobody takes the output any more the command learns of it by its pipe.
func TestCopyOutToNobody(t *testing.T) {
	worker, box := streams(t)
	p := newPipes(t, false)
	copied := p.copyAll(box)
	box.Fail(wire.ErrEnded)
	_ = worker
	eventually.True(t, eventually.Patience, "writing fails", func() bool {
		_, err := unix.Write(p.child[1], []byte("x"))
		return err == unix.EPIPE
	})
	p.closeChild()
	<-copied
}

// The same with a real box: the holder is a process that opened the command's stdout by /proc.
func TestForeignHolder(t *testing.T) {
	boxtest.NeedsRoot(t)
	boxtest.NeedsShield(t)
	r := setup(t, false)
	done := r.begin("echo ready; until [ -e go ]; do sleep 0.02; done; echo $$", func(c *container.Command) { c.User = &container.User{UID: jobUID, GID: jobGID} })
	var held *os.File
	for _, pid := range boxtest.Marked(r.mark) {
		f, err := os.OpenFile("/proc/"+itoa(pid)+"/fd/1", os.O_WRONLY, 0)
		if target, _ := os.Readlink("/proc/" + itoa(pid) + "/fd/1"); err == nil && strings.HasPrefix(target, "pipe:") {
			held = f
			break
		}
	}
	if held == nil {
		t.Fatal("no process of the command with a pipe")
	}
	defer held.Close()
	if err := os.WriteFile(r.root+"/work/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-done:
		if got.err != nil || got.Code != 0 || !strings.HasPrefix(got.output, "ready\n") || strings.Count(got.output, "\n") != 2 {
			t.Errorf("got %+v, %v, %q; want code 0 and both lines", got.Exit, got.err, got.output)
		}
	case <-time.After(eventually.Patience):
		t.Fatalf("the command is not over %v after its processes", eventually.Patience)
	}
}
