package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// countResults counts the messages in the result stream that belong to the job, without any code of ours.
func (b *bundle) countResults(t *testing.T, id job.ID) int {
	t.Helper()
	n := 0
	b.js(t, func(js jetstream.JetStream) error {
		for info := range js.ListStreams(t.Context()).Info() {
			if !strings.HasSuffix(info.Config.Name, "RESULTS") {
				continue
			}
			s, err := js.Stream(t.Context(), info.Config.Name)
			if err != nil {
				return err
			}
			full, err := s.Info(t.Context(), jetstream.WithSubjectFilter(">"))
			if err != nil {
				return err
			}
			for subject, count := range full.State.Subjects {
				if strings.Contains(subject, "."+string(id)+".") {
					n += int(count)
				}
			}
		}
		return nil
	})
	return n
}

// js does something with the queue's server that slipway does not.
func (b *bundle) js(t *testing.T, do func(jetstream.JetStream) error) {
	t.Helper()
	nc, err := nats.Connect(b.natsURL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		err = do(js)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lastResult reads the last line of `submit run --output json`.
func lastResult(t *testing.T, out string) *job.Result {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var r job.Result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil || r.Outcome == "" {
		t.Fatalf("last line is no result: %v\n%s", err, out)
	}
	return &r
}
