//go:build linux || darwin

package devserver_test

import (
	"bytes"
	"io"
	"testing"

	"slipway/devserver"
	"slipway/job"
	"slipway/job/natsqueue"
	wsync "slipway/sync"
	"slipway/sync/s3store"
)

// TestKilled: what was confirmed before kill -9 is there at the next start on the same folders.
func TestKilled(t *testing.T) {
	opts := both(t.TempDir(), bothPrograms(t))
	opts.S3.AccessKey, opts.S3.SecretKey = "access", "secret"
	small, large := []byte("small"), bytes.Repeat([]byte("0123456789abcdef"), 3<<19) // large goes up in several parts
	j := &job.Job{ID: job.NewID(), Image: "x", Steps: []job.Step{{Run: "true"}}}

	b := startBoth(t, opts)
	if _, err := b.store.Put(t.Context(), "small", bytes.NewReader(small), int64(len(small)), wsync.PutOptions{IfNoneMatch: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.store.PutStream(t.Context(), "large", bytes.NewReader(large), -1); err != nil {
		t.Fatal(err)
	}
	if err := b.queue.Client().Submit(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if err := b.servers.Kill(); err != nil {
		t.Fatal(err)
	}
	<-b.servers.Done()
	if b.servers.Err() == nil {
		t.Error("Err after kill -9: got nil, want how the process ended")
	}
	b.close()

	b = startBoth(t, opts)
	defer b.close()
	for key, want := range map[string][]byte{"small": small, "large": large} {
		obj, err := b.store.Get(t.Context(), key)
		if err != nil {
			t.Errorf("get %s: %v", key, err)
			continue
		}
		got, err := io.ReadAll(obj.Body)
		obj.Body.Close()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("get %s: got %d bytes, %v, want the %d that were put", key, len(got), err, len(want))
		}
	}
	if st, err := b.queue.Client().Status(t.Context(), j.ID); err != nil || st.State != job.StateQueued {
		t.Errorf("status of the job: got %+v, %v, want %s", st, err, job.StateQueued)
	}
}

// bundle is both servers, and what talks to them.
type bundle struct {
	servers *devserver.Servers
	store   *s3store.Store
	queue   *natsqueue.Conn
}

func startBoth(t *testing.T, opts devserver.Options) *bundle {
	t.Helper()
	s, err := devserver.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) // one of them was killed
	b := &bundle{servers: s}
	if b.store, err = s3store.New(s3store.Config{Endpoint: s.Endpoint, Bucket: "bucket", AccessKey: s.AccessKey, SecretKey: s.SecretKey}); err != nil {
		t.Fatal(err)
	}
	if err := b.store.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.queue, err = natsqueue.Connect(t.Context(), natsqueue.Config{URL: s.NATSURL}); err != nil {
		t.Fatal(err)
	}
	if err := b.queue.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bundle) close() {
	b.queue.Close()
	b.store.Close()
}
