package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"slipway/container"
)

const (
	// testifyTime is how long the engine may take to tell that a box has ended, after the box's line has. The box empties
	// its workspace before it ends; a process 1 that was killed does not.
	testifyTime = 3 * time.Second
	// settleTime is how much later than the end of a box the engine may tell what led to it: its events come from several
	// places at once.
	settleTime = 300 * time.Millisecond
)

// witness listens to the engine's events, over one connection for all boxes, from the first box on. A box that is lost can't
// say why, and its container is removed at its end, so that an inspection comes too late.
type witness struct {
	api

	mu    sync.Mutex
	boxes map[string]*testimony // by the container's id
	up    chan struct{}         // closed when the stream is subscribed or has failed; nil without a stream
	close context.CancelFunc
	reads sync.WaitGroup
}

// testimony is what was heard of one box. The witness's mutex guards it.
type testimony struct {
	whole  bool // the stream has been up since before the box's start
	oom    bool // the kernel killed for memory in its cgroup
	killed bool // somebody asked the engine to signal it
	ended  bool
	code   int
	news   chan struct{} // closed, and made anew, when something of this changes
}

// watch begins to listen for the box with that id, which is about to start.
func (w *witness) watch(ctx context.Context, id string) {
	w.mu.Lock()
	if w.up == nil {
		w.up = make(chan struct{})
		listening, stop := context.WithCancel(context.WithoutCancel(ctx))
		w.close = stop
		w.reads.Go(func() { defer stop(); w.listen(listening, w.up) })
	}
	up := w.up
	w.mu.Unlock()
	timer := time.NewTimer(inspectTimeout)
	defer timer.Stop()
	select {
	case <-up:
	case <-timer.C:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.boxes == nil {
		w.boxes = map[string]*testimony{}
	}
	t := &testimony{news: make(chan struct{})}
	select {
	case <-up:
		t.whole = w.up == up
	default:
	}
	w.boxes[id] = t
}

// forget ends the listening for a box.
func (w *witness) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.boxes, id)
}

// stop ends the stream, and waits for that.
func (w *witness) stop() {
	w.mu.Lock()
	if w.close != nil {
		w.close()
	}
	w.mu.Unlock()
	w.reads.Wait()
}

// listen reads the stream until it ends. What was heard by then is not the whole any more.
func (w *witness) listen(ctx context.Context, up chan struct{}) {
	filters := client.Filters{}.Add("type", string(events.ContainerEventType)).
		Add("label", container.LabelProduct+"="+container.Product).
		Add("event", string(events.ActionOOM), string(events.ActionKill), string(events.ActionDie))
	stream := w.cli.Events(ctx, client.EventsListOptions{Filters: filters})
	close(up)
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.up = nil // the next box has it made again
		for _, t := range w.boxes {
			t.whole = false
			t.tell()
		}
	}()
	for {
		select {
		case e := <-stream.Messages:
			w.hear(e)
		case <-stream.Err: //nolint:errcheck // why it ended does not matter: it proves nothing any more
			return
		}
	}
}

// hear keeps what an event says.
func (w *witness) hear(e events.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.boxes[e.Actor.ID]
	if t == nil {
		return
	}
	switch e.Action {
	case events.ActionOOM:
		t.oom = true
	case events.ActionKill:
		t.killed = true
	case events.ActionDie:
		code, err := strconv.Atoi(e.Actor.Attributes["exitCode"])
		t.ended, t.code, t.whole = true, code, t.whole && err == nil
	}
	t.tell()
}

// tell wakes those who wait for news.
func (t *testimony) tell() {
	close(t.news)
	t.news = make(chan struct{})
}

// testify returns what is known of the box with that id, which its holder has lost. It waits until the engine has told that the
// box has ended, for testifyTime at most.
func (w *witness) testify(id string) testimony {
	limit := time.NewTimer(testifyTime)
	defer limit.Stop()
	for {
		w.mu.Lock()
		t := w.boxes[id]
		if t == nil {
			w.mu.Unlock()
			return testimony{}
		}
		now, news := *t, t.news
		w.mu.Unlock()
		if !now.whole {
			return now
		}
		var settled <-chan time.Time
		if now.ended {
			settled = time.After(settleTime)
		}
		select {
		case <-news:
		case <-settled:
			return now
		case <-limit.C:
			return now
		}
	}
}

// Exit codes of process 1 that its own box can bring about: that of a SIGTERM, and that of a program in Go that meets the
// signal of a defect.
const (
	codeKilled   = 128 + 9
	codeStopped  = 0
	codeCrashed  = 2
	codeSegfault = 128 + 11
)

// cause judges what is known of a lost box: whether it was what ran in it that ended it. rootSteps says that commands could
// signal process 1. Without certainty it returns nil: the engine may have died, or somebody may have told it to kill the box.
func (t testimony) cause(rootSteps bool) error {
	switch {
	case !t.whole || !t.ended || t.killed:
		return nil
	case t.oom && t.code == codeKilled:
		return container.ErrBoxOOM
	case rootSteps && (t.code == codeStopped || t.code == codeCrashed || t.code == codeSegfault):
		return container.ErrBoxEnded
	}
	return nil
}

// whyLost adds to err, with which the box was lost, what the engine knows of it.
func (b *sandbox) whyLost(err error) error {
	t := b.p.witness.testify(b.Info().ID)
	rootSteps := b.spec.HasRelaxation(container.RelaxRootSteps)
	if cause := t.cause(rootSteps); cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	if t.ended && t.killed {
		return fmt.Errorf("%w: %w", errKilled, err)
	}
	return err
}

// errKilled is added to the loss of a box that the engine was told to end.
var errKilled = errors.New("somebody had the engine signal the box")
