package natsqueue_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

// lagging is a way to a server whose answers can be held up: requests arrive, and their answers come too late.
type lagging struct {
	*natsserver.Server
	mu   sync.Mutex
	hold chan struct{} // closed when the answers go on; nil while nothing is held up
}

func (l *lagging) InProcessConn() (net.Conn, error) {
	c, err := l.Server.InProcessConn()
	return &laggingConn{Conn: c, l: l}, err
}

// holdUp keeps the answers back for d.
func (l *lagging) holdUp(d time.Duration) {
	hold := make(chan struct{})
	l.mu.Lock()
	l.hold = hold
	l.mu.Unlock()
	time.AfterFunc(d, func() {
		l.mu.Lock()
		l.hold = nil
		l.mu.Unlock()
		close(hold)
	})
}

type laggingConn struct {
	net.Conn
	l *lagging
}

func (c *laggingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.l.mu.Lock()
	hold := c.l.hold
	c.l.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return n, err
}

// A write of the record may take effect although its confirmation never comes. The call then finds its own write, and must
// not take it for another's.
func TestLostConfirmation(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(job.Lease, *natsqueue.Conn) error{
		"commit": func(l job.Lease, _ *natsqueue.Conn) error {
			_, err := l.Commit(context.Background(), &job.Result{Outcome: job.Succeeded})
			return err
		},
		"requeue": func(l job.Lease, _ *natsqueue.Conn) error {
			return l.Requeue(context.Background(), job.ClassInfra, 0, job.Failure{})
		},
		"release": func(l job.Lease, _ *natsqueue.Conn) error { return l.Release(context.Background()) },
		"cancel": func(l job.Lease, c *natsqueue.Conn) error {
			met, err := c.Client().Cancel(context.Background(), l.Delivery().ID, job.Cancel)
			if err == nil && met != job.StateRunning {
				err = errors.New("met " + string(met))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, slow := setupLagging(t)
			id := b.submit(makeJob())
			l := b.mustNext(b.join(t, "w1"))
			slow.holdUp(5500 * time.Millisecond) // longer than one try
			if err := act(l, b.conn); err != nil {
				t.Errorf("%s: got %v, want its own write to count", name, err)
			}
			st, err := b.conn.Client().Status(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]job.Counts{"requeue": {Infra: 1}}[name]; st.Counts != want {
				t.Errorf("counts: got %+v, want %+v: charged once", st.Counts, want)
			}
		})
	}
}

// The same for a cancel of a waiting job: by its own write the job must not look as if it had been canceled before.
func TestLostConfirmationOfACancel(t *testing.T) {
	t.Parallel()
	b, slow := setupLagging(t)
	id := b.submit(makeJob())
	slow.holdUp(5500 * time.Millisecond)
	if met, err := b.conn.Client().Cancel(t.Context(), id, job.Cancel); err != nil || met != job.StateQueued {
		t.Errorf("Cancel: got %q, %v; want the state that it met, queued", met, err)
	}
}

// setupLagging makes a queue on a server whose answers can be held up.
func setupLagging(t *testing.T) (*bundle, *lagging) {
	t.Helper()
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), NoListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	slow := &lagging{Server: srv}
	return setup(t, unhurried, func(c *natsqueue.Config) { c.InProcess = slow }), slow
}
