package docker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mobycontainer "github.com/moby/moby/api/types/container"

	"slipway/container"
	"slipway/test/eventually"
)

// fakeEngine answers to one container, and remembers the requests in their order.
type fakeEngine struct {
	mu       sync.Mutex
	requests []string // method and the last parts of the path
	known    int      // how many inspections still find the container
	status   string   // of the container
	removal  []int    // HTTP status of each removal in turn; then 204
	waits    chan struct{}
	startErr bool
	list     string // of containers
}

// newFake returns a Provider on a fake engine.
func newFake(t *testing.T, f *fakeEngine, parallel int) *Provider {
	t.Helper()
	if f.list == "" {
		f.list = "[]"
	}
	srv := httptest.NewServer(f)
	p, err := New(Config{Host: strings.Replace(srv.URL, "http", "tcp", 1), Parallel: parallel})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return p
}

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v"), "/")
	f.mu.Lock()
	if what != "_ping" && !strings.HasSuffix(r.URL.Path, "_ping") {
		f.requests = append(f.requests, r.Method+" "+what)
	}
	f.mu.Unlock()
	w.Header().Set("Api-Version", "1.44")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(what, "/attach"):
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the worker closes its end
		_ = conn.Close()
		f.note("line closed")
	case strings.HasSuffix(what, "/start"):
		if f.startErr {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"message":"no such file"}`)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(what, "/wait"):
		if f.waits != nil {
			select {
			case <-f.waits:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(w, `{"StatusCode":0}`)
	case what == "containers/json":
		_, _ = io.WriteString(w, f.list)
	case what == "volumes":
		_, _ = io.WriteString(w, `{"Volumes":[]}`)
	case r.Method == http.MethodDelete:
		w.WriteHeader(f.nextRemoval())
		_, _ = io.WriteString(w, `{"message":"removal is in progress"}`)
	case strings.HasSuffix(what, "/json"):
		if !f.found() {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"no such container"}`)
			return
		}
		_, _ = io.WriteString(w, `{"Id":"c1","Name":"/slipway-x-1","State":{"Status":"`+f.status+`"},"Config":{"Labels":{"`+container.LabelProduct+`":"`+container.Product+`"}}}`)
	default: // kill
		w.WriteHeader(http.StatusNoContent)
	}
}

func (f *fakeEngine) note(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, s)
}

func (f *fakeEngine) found() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known--
	return f.known >= 0
}

func (f *fakeEngine) nextRemoval() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.removal) == 0 {
		return http.StatusNoContent
	}
	code := f.removal[0]
	f.removal = f.removal[1:]
	return code
}

func (f *fakeEngine) seen(part string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if strings.Contains(r, part) {
			n++
		}
	}
	return n
}

// The attach comes before the start: the box's stdin must never be without a holder, and nothing of its stdout may be
// missed. When the start fails, the line is closed, so that a box that started all the same ends.
func TestStartAttachesFirst(t *testing.T) {
	f := &fakeEngine{startErr: true}
	p := newFake(t, f, 2)
	b := newBox(p, container.Spec{Name: "slipway-x-1"})
	b.info.ID = "c1"
	if err := b.start(t.Context()); err == nil {
		t.Fatal("start: got no error, want the engine's")
	}
	eventually.True(t, eventually.Patience, "the line is closed", func() bool { return f.seen("line closed") == 1 })
	f.mu.Lock()
	got := slices.Clone(f.requests)
	f.mu.Unlock()
	want := []string{"POST containers/c1/attach", "GET events", "POST containers/c1/start", "line closed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(p.lifecycle) != 0 {
		t.Errorf("places in use after a failed start: got %d, want 0", len(p.lifecycle))
	}
}

// An engine answers "in progress" to all but the first of several removals, and knows the container a little longer
// than its wait says. A removal is over when the container is not known any more.
func TestDestroyWaitsUntilGone(t *testing.T) {
	f := &fakeEngine{removal: []int{http.StatusConflict}, known: 3, status: "running"}
	p := newFake(t, f, 2)
	if err := p.destroy(t.Context(), "c1"); err != nil {
		t.Errorf("destroy: got %v, want no error", err)
	}
	if got := f.seen("/json"); got != 4 {
		t.Errorf("asked %d times whether it is there, want 4: until it is not", got)
	}
	if got := f.seen("DELETE"); got != 1 {
		t.Errorf("removed %d times, want once", got)
	}
}

// The engine's answer to a wait that nobody listens to any more is taken all the same; else the client's goroutine would
// hold it for ever, which the check at the end of all tests would find.
func TestAwaitUnheard(t *testing.T) {
	p := newFake(t, &fakeEngine{}, 1)
	told, stop := p.await(t.Context(), "c1", mobycontainer.WaitConditionRemoved)
	eventually.True(t, eventually.Patience, "the engine has told", func() bool { return len(told) == 1 })
	stop()
}

// A container that stays is an error after a few tries, never a success.
func TestDestroyOfWhatStays(t *testing.T) {
	f := &fakeEngine{known: 1 << 20, status: "running"}
	p := newFake(t, f, 2)
	if err := p.destroy(t.Context(), "c1"); err == nil || !strings.Contains(err.Error(), "still there") {
		t.Errorf("destroy: got %v, want an error that says it is still there", err)
	}
	if got := f.seen("DELETE"); got != removeTries {
		t.Errorf("removed %d times, want %d", got, removeTries)
	}
}

// A box that has much to wipe holds its place among the lifecycle calls for a moment only; other boxes go on.
func TestLongWipeHoldsNobodyUp(t *testing.T) {
	f := &fakeEngine{waits: make(chan struct{})}
	p := newFake(t, f, 1)
	left := make(chan error, 1)
	go func() { left <- p.leftByItself(t.Context(), "c1") }()
	eventually.True(t, eventually.Patience, "it waits for the end", func() bool { return f.seen("/wait") == 1 })
	if len(p.lifecycle) != 1 {
		t.Errorf("places in use at first: got %d, want 1", len(p.lifecycle))
	}
	ctx, cancel := context.WithTimeout(t.Context(), promptTime+eventually.Patience)
	defer cancel()
	if err := p.enter(ctx); err != nil {
		t.Errorf("another box's call beside a long wipe: %v, want a place", err)
	}
	p.leave()
	select {
	case err := <-left:
		t.Errorf("the wait is over (%v) although the box still wipes", err)
	default:
	}
	close(f.waits)
	if err := <-left; err != nil {
		t.Errorf("a box that has ended: got %v, want no error", err)
	}
}

// No more than Parallel lifecycle calls run at once, and waiting for a place ends with the context.
func TestParallel(t *testing.T) {
	p := newFake(t, &fakeEngine{}, 2)
	for range 2 {
		if err := p.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if err := p.enter(ctx); !errors.Is(err, enough) {
		t.Errorf("a third call: got %v, want the context's cause", err)
	}
	p.leave()
	if err := p.enter(t.Context()); err != nil {
		t.Errorf("after one has left: got %v, want a place", err)
	}
}

// Removal by name tells a running box to end, so that its supervisor wipes and takes its volumes along. Only what does
// not end by itself is killed; what is not slipway's is left alone.
func TestRemoveByNameLetsItEnd(t *testing.T) {
	f := &fakeEngine{known: 1, status: "running"}
	p := newFake(t, f, 2)
	if err := p.Remove(t.Context(), "slipway-x-1"); err != nil {
		t.Errorf("Remove: got %v, want no error", err)
	}
	if kills, removals := f.seen("/kill"), f.seen("DELETE"); kills != 1 || removals != 0 {
		t.Errorf("got %d signals and %d removals, want 1 and 0", kills, removals)
	}
	f = &fakeEngine{known: 1, status: "exited"}
	p = newFake(t, f, 2)
	if err := p.Remove(t.Context(), "slipway-x-1"); err != nil {
		t.Errorf("Remove of an ended box: got %v, want no error", err)
	}
	if kills, removals := f.seen("/kill"), f.seen("DELETE"); kills != 0 || removals != 1 {
		t.Errorf("an ended box: got %d signals and %d removals, want 0 and 1", kills, removals)
	}
}

// A container that lost its name, as an engine leaves it that was killed in the middle of a removal, is its box's all the same:
// it is on the list by the label, and goes with what the label names.
func TestNameless(t *testing.T) {
	const list = `[{"Id":"c9","Names":[],"State":"exited","Labels":{"` + container.LabelBox + `":"slipway-x-1"}}]`
	f := &fakeEngine{list: list, known: 1}
	p := newFake(t, f, 2)
	infos, err := p.List(t.Context(), nil)
	if err != nil || len(infos) != 1 || infos[0].Name != "slipway-x-1" {
		t.Errorf("list: got %+v, %v; want the box that the label names", infos, err)
	}
	if err := p.Remove(t.Context(), "slipway-x-1"); err != nil {
		t.Errorf("Remove: got %v, want no error", err)
	}
	if got := f.seen("DELETE containers/c9"); got != 1 {
		t.Errorf("removed c9 %d times, want once", got)
	}
}

// A container that is on the engine's list, and that the engine does not know otherwise, is nothing that is left.
func TestGhost(t *testing.T) {
	f := &fakeEngine{list: `[{"Id":"c9","Names":[],"State":"dead","Labels":{"` + container.LabelBox + `":"slipway-x-1"}}]`}
	if infos, err := newFake(t, f, 2).List(t.Context(), nil); err != nil || len(infos) != 0 {
		t.Errorf("list: got %+v, %v; want nothing", infos, err)
	}
}

// A box that never started is removed at once, and only once.
func TestRemoveOfWhatNeverStarted(t *testing.T) {
	f := &fakeEngine{}
	p := newFake(t, f, 2)
	b := newBox(p, container.Spec{Name: "slipway-x-1"})
	b.info.ID = "c1"
	begin := time.Now()
	for range 2 {
		if err := b.Remove(t.Context()); err != nil {
			t.Errorf("Remove: got %v, want no error", err)
		}
	}
	select {
	case <-b.Done():
	default:
		t.Error("Done is open after Remove")
	}
	if got := f.seen("DELETE"); got != 1 {
		t.Errorf("removed %d times by two calls, want once", got)
	}
	if _, err := b.Exec(t.Context(), container.Command{Args: []string{"true"}}); !errors.Is(err, container.ErrStopped) {
		t.Errorf("Exec afterwards: got %v, want ErrStopped", err)
	}
	if took := time.Since(begin); took > leaveTime {
		t.Errorf("took %v: a box that never started is not waited for", took)
	}
}
