package natsqueue_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

func TestConnectErrors(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	_ = l.Close()
	bad := fast
	bad.DeadMan = bad.AckWait
	for _, c := range []struct {
		name string
		cfg  natsqueue.Config
		want []string
	}{
		{"no URL", natsqueue.Config{}, []string{"setting URL", "nats://127.0.0.1:4222"}},
		{"nobody there", natsqueue.Config{URL: "nats://me:secret@" + free}, []string{"URL", free, "is it running"}},
		{"no creds", natsqueue.Config{URL: "nats://" + free, CredsFile: "/does/not/exist"}, []string{"CredsFile", "/does/not/exist"}},
		{"scheme", natsqueue.Config{URL: "http://me:secret@" + free}, []string{"setting URL"}},
		{"port", natsqueue.Config{URL: "nats://me:secret@127.0.0.1:99999"}, []string{"setting URL"}},
		{"one of two", natsqueue.Config{URL: "nats://" + free + ",nats://me:secret@:4222"}, []string{"setting URL"}},
		{"creds of another kind", natsqueue.Config{URL: "nats://" + free, CredsFile: "conn_test.go"}, []string{"CredsFile"}},
		{"no CA", natsqueue.Config{URL: "nats://" + free, CAFile: "/does/not/exist"}, []string{"CAFile"}},
		{"prefix", natsqueue.Config{URL: "nats://" + free, Prefix: "a.b"}, []string{"Prefix"}},
		{"queue", natsqueue.Config{URL: "nats://" + free, Queues: []string{"*"}}, []string{"Queues"}},
		{"queue twice", natsqueue.Config{URL: "nats://" + free, Queues: []string{"a", "b", "a"}}, []string{"Queues", "a is given twice"}},
		{"replicas", natsqueue.Config{URL: "nats://" + free, Replicas: 2}, []string{"Replicas"}},
		{"timing", natsqueue.Config{URL: "nats://" + free, Timing: bad}, []string{"dead_man"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := natsqueue.Connect(t.Context(), c.cfg)
			if err == nil {
				conn.Close()
			}
			contains(t, err, c.want...)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

// roles is a server's configuration with a user that lacks rights.
const roles = `
authorization {
  users = [
    {user: admin, password: a}
    {user: nofetch, password: n, permissions: {publish: {deny: ["$JS.API.CONSUMER.MSG.NEXT.>"]}}}
    {user: noresult, password: r, permissions: {publish: {deny: ["slipway.R.>", "$KV.slipway-jobs.>", "$JS.API.CONSUMER.CREATE.KV_slipway-jobs.>"]}}}
    {user: single, password: s, permissions: {publish: {deny: ["$JS.API.DIRECT.GET.*"]}}}
    {user: nolist, password: l, permissions: {publish: {deny: ["$JS.API.CONSUMER.LIST.>"]}}}
    {user: nojanitor, password: j, permissions: {publish: {deny: ["$KV.slipway-workers._janitor"]}}}
    {user: nofloor, password: f, permissions: {publish: {deny: ["slipway.J._.>"]}}}
    {user: producer, password: p, permissions: {publish: {allow: ["slipway.J.>", "slipway.D.wait.>"]}, subscribe: {allow: ["_INBOX_producer.>"]}}}
  ]
}
`

// roleServer starts a server with these roles and sets a queue up.
func roleServer(t *testing.T) func(user, inbox string, edits ...func(*natsqueue.Config)) *natsqueue.Conn {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(conf, []byte(roles), 0o600); err != nil {
		t.Fatal(err)
	}
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Config: conf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	connect := func(user, inbox string, edits ...func(*natsqueue.Config)) *natsqueue.Conn {
		t.Helper()
		cfg := natsqueue.Config{
			URL: strings.Replace(srv.ClientURL(), "nats://", "nats://"+user+"@", 1), Timing: fast, InboxPrefix: inbox,
			MaxJobBytes: 1 << 20, EventsBytes: 1 << 20,
		}
		for _, edit := range edits {
			edit(&cfg)
		}
		conn, err := natsqueue.Connect(t.Context(), cfg)
		if err != nil {
			t.Fatalf("Connect as %s: %v", user, err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	if err := connect("admin:a", "").Setup(t.Context()); err != nil {
		t.Fatalf("Setup: %v", err)
	}
	_, err = natsqueue.Connect(t.Context(), natsqueue.Config{URL: strings.Replace(srv.ClientURL(), "nats://", "nats://admin:wrong@", 1)})
	contains(t, err, "refused the credentials", "the user in the URL")
	return connect
}

func TestRoles(t *testing.T) {
	t.Parallel()
	connect := roleServer(t)

	// A producer needs no more than the right to publish jobs.
	producer := connect("producer:p", "_INBOX_producer").Client()
	now := makeJob()
	if err := producer.Submit(t.Context(), now); err != nil {
		t.Fatalf("Submit as producer: %v", err)
	}
	if err := producer.Submit(t.Context(), now); !errors.Is(err, job.ErrExists) {
		t.Errorf("Submit again as producer: got %v, want ErrExists", err)
	}
	later := makeJob()
	later.NotBefore = time.Now().Add(time.Hour)
	if err := producer.Submit(t.Context(), later); err != nil {
		t.Errorf("Submit for later as producer: %v", err)
	}
	began := time.Now()
	_, err := producer.Status(t.Context(), later.ID)
	var denied *natsqueue.PermissionError
	if !errors.As(err, &denied) || denied.Op != "publish" || !errors.Is(err, job.ErrUnavailable) {
		t.Errorf("Status as producer: got %v, want a PermissionError", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the denial took %s, want it at once", took)
	}

	dropWithoutResults(t, connect)

	// Check names everything that it finds.
	contains(t, connect("noresult:r", "").Check(t.Context()), "slipway.R.default.probe.0", "$KV.slipway-jobs.probe", "CONSUMER.CREATE.KV_slipway-jobs.")

	// A worker that may not fetch says so, instead of waiting for ever.
	conn := connect("nofetch:n", "")
	w, err := conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1"})
	if err != nil {
		t.Fatalf("Consumer: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := w.Next(ctx); !errors.As(err, &denied) || !strings.Contains(denied.Subject, "MSG.NEXT") {
		t.Errorf("Next without the right to fetch: got %v, want a PermissionError", err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestInProcess(t *testing.T) {
	t.Parallel()
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), NoListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	conn, err := natsqueue.Connect(t.Context(), natsqueue.Config{InProcess: srv, MaxJobBytes: 1 << 20, EventsBytes: 1 << 20})
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(conn.Close)
	if err := conn.Setup(t.Context()); err != nil {
		t.Fatalf("Setup: %v", err)
	}
	if err := conn.Client().Submit(t.Context(), makeJob()); err != nil {
		t.Errorf("Submit: %v", err)
	}
	if _, err := natsserver.Start(natsserver.Options{}); err == nil {
		t.Error("Start without Dir: got no error, want one")
	}
	if _, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Addr: "nonsense"}); err == nil {
		t.Error("Start with a wrong Addr: got no error, want one")
	}
}

// dropWithoutResults: a person who may not publish results can drop a letter whose result is there.
func dropWithoutResults(t *testing.T, connect func(user, inbox string, edits ...func(*natsqueue.Config)) *natsqueue.Conn) {
	t.Helper()
	admin := connect("admin:a", "")
	w, err := admin.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w0"})
	if err != nil {
		t.Fatalf("Consumer: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	l, err := w.Next(ctx)
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget}); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	id := l.Delivery().ID
	// Without its result the letter has to stay: a worker that finds the token later takes the result as proof that the
	// letter existed, and without either it would bring the letter back.
	if err := admin.ForgetResult(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	denied, ok := errors.AsType[*natsqueue.PermissionError](connect("noresult:r", "").Client().DropDead(t.Context(), id))
	if !ok || !strings.Contains(denied.Subject, ".R.") {
		t.Errorf("DropDead that can't publish the result: got %v, want a PermissionError for it", denied)
	}
	letters := 0
	for d, err := range admin.Client().DeadLetters(t.Context()) {
		if err != nil || d.ID != id || d.Result != nil {
			t.Errorf("dead letter: got %+v, %v, want that of %s without a result", d, err, id)
		}
		letters++
	}
	if letters != 1 {
		t.Errorf("got %d dead letters, want the one that could not be dropped", letters)
	}
	// Once the result is there nothing but the letter is to be removed.
	v, err := admin.Load(t.Context(), id)
	if err == nil {
		err = admin.Settle(t.Context(), id, v)
	}
	if err != nil {
		t.Fatalf("settle again: %v", err)
	}
	if err := connect("noresult:r", "").Client().DropDead(t.Context(), id); err != nil {
		t.Errorf("DropDead without the right to publish results: %v", err)
	}
}
