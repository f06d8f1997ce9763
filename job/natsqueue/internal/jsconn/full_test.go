package jsconn

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// A refusal for lack of room is told from everything else that a server can answer, and names the stream.
func TestFull(t *testing.T) {
	t.Parallel()
	c := &caller{streams: []StreamName{{"p-JOBS", "p.J."}, {"KV_p-jobs", "$KV.p-jobs."}}}
	api := func(code int, err jetstream.ErrorCode, text string) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{Code: code, ErrorCode: err, Description: text})
	}
	for _, tt := range []struct {
		name, subject string
		err           error
		stream        string // empty: not full
		store         bool
		transient     bool
	}{
		{"the stream's bytes", "p.J.q.normal.X", api(503, 10077, "maximum bytes exceeded"), "p-JOBS", false, false},
		{"the stream's messages", "p.J.q.normal.X", api(503, 10077, "maximum messages exceeded"), "p-JOBS", false, false},
		{"a store that closes", "p.J.q.normal.X", api(503, 10077, "store is closed"), "", false, true},
		{"the server's store", "$KV.p-jobs.X", api(503, 10023, "insufficient resources"), "KV_p-jobs", true, false},
		{"the account's store", "$KV.p-jobs.X", api(400, 10002, "resource limits exceeded for account"), "KV_p-jobs", true, false},
		{"no room to reserve", "$JS.API.STREAM.CREATE.p-JOBS", api(500, 10047, "insufficient storage resources available"), "p-JOBS", true, false},
		{"no memory to reserve", "$JS.API.STREAM.CREATE.p-JOBS", api(500, 10028, "insufficient memory resources available"), "p-JOBS", true, false},
		{"a subject of no stream", "other.X", api(503, 10023, "insufficient resources"), "other.X", true, false},
		{"another write", "$KV.p-jobs.X", api(400, jetstream.JSErrCodeStreamWrongLastSequence, "wrong last sequence"), "", false, false},
		{"no leader", "p.J.q.normal.X", api(503, 10008, "JetStream system temporarily unavailable"), "", false, true},
	} {
		got := c.full(tt.subject, tt.err)
		full, ok := errors.AsType[*FullError](got)
		if ok != (tt.stream != "") || errors.Is(got, job.ErrFull) != ok || IsFull(got) != ok || Transient(got) != tt.transient {
			t.Errorf("%s: got %v (full %t, transient %t), want full: %t, transient: %t", tt.name, got, ok, Transient(got), tt.stream != "", tt.transient)
			continue
		}
		if ok && (full.Stream != tt.stream || full.Store != tt.store || !errors.Is(got, errors.Unwrap(tt.err))) {
			t.Errorf("%s: got %+v, want stream %s, store %t, and the server's answer in it", tt.name, full, tt.stream, tt.store)
		}
		if again := c.full(tt.subject, got); again != got { //nolint:errorlint // the very same
			t.Errorf("%s: a second look made %v of it", tt.name, again)
		}
	}
	if got := c.full("p.J.x", nil); got != nil {
		t.Errorf("no error: got %v", got)
	}
}
