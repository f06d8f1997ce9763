//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"slipway/container/supervisor/internal/wire"
)

// serve reads frames until the connection ends. It waits for nothing else.
func (b *box) serve(in io.Reader) {
	for {
		f, err := wire.ReadFrame(in, wire.Alloc)
		if errors.Is(err, wire.ErrProtocol) {
			b.life.end(exitProtocol, err.Error())
			return
		}
		if err != nil {
			b.life.end(exitEOF, "the worker is gone")
			return
		}
		b.watchdog.touch()
		if err := b.handle(f); err != nil {
			b.life.end(exitProtocol, err.Error())
			return
		}
	}
}

func (b *box) handle(f wire.Frame) error {
	switch f.Type {
	case wire.Ping:
		b.pong()
		return nil
	case wire.Open:
		return b.open(f)
	case wire.Stop:
		if len(f.Payload) != 8 {
			return wire.ErrProtocol
		}
		b.stop(time.Duration(binary.BigEndian.Uint64(f.Payload)))
		return nil
	case wire.Data, wire.EOF, wire.WindowUpdate, wire.Cancel:
		return b.mux.Dispatch(f)
	default:
		return wire.ErrProtocol
	}
}

// pong answers a Ping without waiting for a worker that does not read. While one Pong is under way no other
// is made: that one is the answer.
func (b *box) pong() {
	if b.ponging.CompareAndSwap(false, true) {
		go func() {
			_ = b.mux.Send(wire.Pong, 0, nil) // if stdout is closed, stdin will be soon
			b.ponging.Store(false)
		}()
	}
}

// open begins a stream: a command or a file operation.
func (b *box) open(f wire.Frame) error {
	if len(f.Payload) == 0 {
		return wire.ErrProtocol
	}
	s, err := b.mux.Accept(f.ID)
	if err != nil {
		return err
	}
	if b.life.isStopping() { // Bye is the answer to everything that comes now
		return nil
	}
	kind, params := wire.Kind(f.Payload[0]), f.Payload[1:]
	switch {
	case kind == wire.KindExec:
		b.execs.Go(func() { b.exec(s, params) })
	case b.files.Serves(kind):
		go b.files.Answer(s, kind, params)
	default:
		return wire.ErrProtocol
	}
	return nil
}
