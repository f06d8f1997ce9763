package supervisor

import (
	"bufio"
	"io"
	"testing"
	"time"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

const deadMan = 20 * time.Second

// peer is the box's end of a connection, spoken by hand.
type peer struct {
	t      *testing.T
	in     *bufio.Reader
	out    io.WriteCloser
	mux    *wire.Mux
	mute   bool // does not answer pings
	deaf   bool // reads nothing more after a stream was opened
	config Config
	opened chan wire.Frame
	stops  chan wire.Frame
	ended  chan struct{}
}

// conn is the worker's end.
type conn struct {
	io.Reader
	io.Writer
	close func()
}

func (c conn) Close() error { c.close(); return nil }

// connect returns a session with a peer that is ready.
func connect(t *testing.T, change ...func(*peer)) (*Session, *peer) {
	t.Helper()
	toBox, fromWorker := io.Pipe()
	toWorker, fromBox := io.Pipe()
	p := &peer{
		t: t, in: bufio.NewReader(toBox), out: fromBox, mux: wire.NewMux(fromBox), config: Config{DeadMan: deadMan},
		opened: make(chan wire.Frame, 16), stops: make(chan wire.Frame, 1), ended: make(chan struct{}),
	}
	for _, c := range change {
		c(p)
	}
	go p.serve()
	close := func() { _, _, _ = toWorker.Close(), fromWorker.Close(), toBox.Close() }
	s, err := Connect(t.Context(), conn{toWorker, fromWorker, close}, p.config)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		_ = fromBox.Close()
		<-p.ended
	})
	return s, p
}

func (p *peer) serve() {
	defer close(p.ended)
	for {
		f, err := wire.ReadFrame(p.in, wire.Alloc)
		if err != nil {
			return
		}
		switch f.Type {
		case wire.Hello:
			err = p.mux.Send(wire.Ready, 0, wire.Report{PID: 1}.Encode())
		case wire.Ping:
			if !p.mute {
				err = p.mux.Send(wire.Pong, 0, nil)
			}
		case wire.Open:
			p.opened <- f
			if p.deaf {
				return
			}
		case wire.Stop:
			p.stops <- f
		}
		if err != nil {
			return
		}
	}
}

func (p *peer) send(t wire.Type, id uint32, payload []byte) {
	p.t.Helper()
	if err := p.mux.Send(t, id, payload); err != nil {
		p.t.Errorf("send frame of type %d: %v", t, err)
	}
}

// answer ends the next stream that is opened: data, if there is any, and the end. The session may be over by then.
func (p *peer) answer(data, end []byte) {
	id := (<-p.opened).ID
	if len(data) > 0 {
		_ = p.mux.Send(wire.Data, id, data)
	}
	_ = p.mux.Send(wire.End, id, end)
}

func command(change ...func(*container.Command)) container.Command {
	cmd := container.Command{Args: []string{"true"}}
	for _, c := range change {
		c(&cmd)
	}
	return cmd
}
