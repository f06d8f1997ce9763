package natsqueue_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// TestCloseLeavesTheNextProcessAlone: a process that takes the name of one that is closing keeps its entry. The removal once
// came a second later, after the last pulls, and then other workers took the jobs of the new process over.
func TestCloseLeavesTheNextProcessAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	w := b.join(t, "w1")
	b.nothing(w, 200*time.Millisecond) // leaves pulls behind, for which Close waits
	nc, _ := b.raw()
	entries := subscribe(t, nc, "$KV."+b.cfg.Prefix+"-workers.w1")
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- w.Close(t.Context()) }()
	var next *natsqueue.Consumer
	conn := b.connect()
	eventually.True(t, b.bound(20*time.Second), "the name is free", func() bool {
		var err error
		next, err = conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1"})
		return err == nil
	})
	t.Cleanup(func() { _ = next.Close(context.Background()) })
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	removed := 0
	for range pending(t, nc, entries) {
		msg, err := entries.NextMsg(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if msg.Header.Get("KV-Operation") == "DEL" {
			removed++
		}
	}
	if alive, err := conn.Workers(t.Context()); err != nil || len(alive) != 1 || removed != 1 {
		t.Errorf("after Close: got workers %v, %v, and %d removals; want the new process, and the removal of the old one", alive, err, removed)
	}
}

// A Close that ran out of time is finished by the next one.
func TestCloseAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	w := b.join(t, "w1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close without time: got %v, want %v", err, context.Canceled)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if alive, err := b.conn.Workers(t.Context()); err != nil || len(alive) != 0 {
		t.Errorf("workers after Close: got %v, %v, want none", alive, err)
	}
}

// A process that stood still for so long that another one took its name does not write over the other's entry.
func TestRenewLeavesTheNextProcessAlone(t *testing.T) {
	t.Parallel()
	faults := make(chan error, 100)
	b := setup(t, func(c *natsqueue.Config) {
		c.OnError = func(err error) {
			select {
			case faults <- err:
			default:
			}
		}
	})
	b.join(t, "w1")
	data, err := json.Marshal(natsqueue.WorkerInfo{Name: "w1", Boot: "OTHER", StartedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	b.publish("$KV."+b.cfg.Prefix+"-workers.w1", data)
	for limit := time.After(b.bound(20 * time.Second)); ; {
		select {
		case err := <-faults:
			if !strings.Contains(err.Error(), "in use by another process") {
				continue
			}
		case <-limit:
			t.Error("OnError heard nothing of the other process")
		}
		break
	}
	alive, err := b.conn.Workers(t.Context())
	if err != nil || len(alive) != 1 || alive[0].Boot != "OTHER" {
		t.Errorf("workers: got %+v, %v, want the other process", alive, err)
	}
}

// A server that is silent in the middle of a claim does not keep Next past its context. The job is given back once the
// server answers, and pays for nothing.
func TestNextEndsWhileAClaimHangs(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	line := newLine(t, strings.TrimPrefix(b.cfg.URL, "nats://"), "$KV."+b.cfg.Prefix+"-jobs.")
	direct := b.cfg.URL
	b.cfg.URL = "nats://" + line.addr
	w := b.join(t, "w1")
	b.cfg.URL = direct
	id := b.submit(makeJob())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := w.Next(ctx); ended <- err }()
	<-line.reached
	cancel()
	began := time.Now()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Next: got %v, want %v", err, context.Canceled)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Next returned %s after the end of its context, want a second or two", took)
	}
	line.release()
	if err := w.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if d := b.mustNext(b.join(t, "w2")).Delivery(); d.ID != id || d.Attempt != 2 || d.Counts != (job.Counts{}) {
		t.Errorf("delivery: got %+v, want the second attempt of %s, at no cost", d, id)
	}
}

// line is a connection to a server that hangs from a word of the client's on, until it is released.
type line struct {
	addr    string
	reached chan struct{} // closed when the word came
	release func()
}

func newLine(t *testing.T, server, word string) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	released, ended := make(chan struct{}), make(chan struct{})
	n := &line{addr: l.Addr().String(), reached: make(chan struct{}), release: sync.OnceFunc(func() { close(released) })}
	go func() {
		defer close(ended)
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		up, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(client, up); _ = client.Close() }()
		n.pass(up, client, []byte(word), released)
	}()
	t.Cleanup(func() {
		n.release()
		_ = l.Close()
		<-ended
	})
	return n
}

// pass copies to the server, and waits in front of the first piece that has word in it.
func (n *line) pass(server io.Writer, client io.Reader, word []byte, released <-chan struct{}) {
	var seen []byte // also a word that comes in two pieces is found
	for buf, hung := make([]byte, 32<<10), false; ; {
		size, err := client.Read(buf)
		seen = append(seen[max(0, len(seen)-len(word)):], buf[:size]...)
		if !hung && bytes.Contains(seen, word) {
			hung = true
			close(n.reached)
			<-released
		}
		if _, writeErr := server.Write(buf[:size]); err != nil || writeErr != nil {
			return
		}
	}
}
