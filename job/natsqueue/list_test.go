package natsqueue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// list returns the ids that match, with their states.
func list(t *testing.T, c *natsqueue.Client, q job.ListQuery) (ids []job.ID, states []job.State) {
	t.Helper()
	for st, err := range c.List(t.Context(), q) {
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		ids, states = append(ids, st.ID), append(states, st.State)
	}
	return ids, states
}

// TestListOfManyPages: a list that is read in pages has every job once, newest first, wherever the jobs are.
func TestListOfManyPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	nc, _ := b.raw()
	const n = 2 * natsqueue.ListPage
	var want []job.ID
	for i := range n {
		id := job.NewID()
		subject, data := b.token(id), `{"queue":"default"}`
		if i%2 == 0 {
			subject, data = "$KV."+b.cfg.Prefix+"-jobs."+string(id), `{"state":"failed","queue":"default"}`
		}
		if err := nc.Publish(subject, []byte(data)); err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	eventually.True(t, b.bound(20*time.Second), "all messages are stored", func() bool {
		_, js := b.raw()
		records, err := js.Stream(t.Context(), "KV_"+b.cfg.Prefix+"-jobs")
		return err == nil && records.CachedInfo().State.Msgs == n/2 && len(b.stored("JOBS", b.cfg.Prefix+".J.>")) == n/2
	})
	slices.Reverse(want)
	got, states := list(t, b.conn.Client(), job.ListQuery{Limit: 10 * n})
	if !slices.Equal(got, want) {
		t.Fatalf("got %d jobs, want these %d in their order", len(got), len(want))
	}
	for i, s := range states {
		if want := []job.State{job.StateQueued, job.StateFailed}[i%2]; s != want {
			t.Fatalf("job %d: got state %s, want %s", i, s, want)
		}
	}
	if got, _ := list(t, b.conn.Client(), job.ListQuery{States: []job.State{job.StateFailed}, Limit: n/2 - 1}); !slices.Equal(got, every(want[1:], 2)[:n/2-1]) {
		t.Errorf("with a state and a limit: got %d jobs, want the %d newest failed ones", len(got), n/2-1)
	}
}

func every(ids []job.ID, step int) (some []job.ID) {
	for i := 0; i < len(ids); i += step {
		some = append(some, ids[i])
	}
	return some
}

// TestListOfLargeSpecs: an answer of the server that ends early is gone on with.
func TestListOfLargeSpecs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var want []job.ID
	for range 12 { // an answer holds 4 MiB
		j, text := makeJob(), strings.Repeat("x", 700_000)
		j.Inputs = append(j.Inputs, job.Input{Path: "a", Content: &text})
		want = append(want, b.submit(j))
	}
	slices.Reverse(want)
	if got, _ := list(t, b.conn.Client(), job.ListQuery{}); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestListDenied: an account that may read single records alone gets its list all the same.
func TestListDenied(t *testing.T) {
	t.Parallel()
	connect := roleServer(t)
	admin := connect("admin:a", "")
	w, err := admin.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	var want []job.ID
	for i := range 3 {
		j := makeJob()
		j.Name = fmt.Sprint(i)
		if i == 1 {
			j.NotBefore = time.Now().Add(time.Hour)
		}
		if err := admin.Client().Submit(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		want = append(want, j.ID)
	}
	l, err := w.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Succeeded}); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(want)
	got, states := list(t, connect("single:s", "").Client(), job.ListQuery{})
	if !slices.Equal(got, want) || !slices.Equal(states, []job.State{job.StateQueued, job.StateScheduled, job.StateDone}) {
		t.Errorf("got %v, %v, want %v queued, scheduled and done", got, states, want)
	}
}

// TestListBesideForeignMessages: a message without a job's id is no job, and one that names another job in its header is none
// either.
func TestListBesideForeignMessages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.submit(makeJob())
	b.publish(b.cfg.Prefix+".J.default.normal.no-id", []byte("{}"))
	_, js := b.raw()
	misled := nats.NewMsg(b.token(job.NewID()))
	misled.Header.Set("Nats-Schedule-Target", b.cfg.Prefix+".D.due.other.low."+string(id))
	if _, err := js.PublishMsg(t.Context(), misled); err != nil {
		t.Fatal(err)
	}
	got, _ := list(t, b.conn.Client(), job.ListQuery{Queue: "default"})
	if len(got) != 2 || got[1] != id {
		t.Errorf("got %v, want the foreign token's job and %s", got, id)
	}
}
