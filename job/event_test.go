package job_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/job"
)

// TestEvent_Step: a reader of JSON learns which step an event is about, the first one included, and that others are about none.
func TestEvent_Step(t *testing.T) {
	for _, tc := range []struct {
		kind job.EventKind
		step int
		want bool
	}{
		{job.EventStepStart, 0, true},
		{job.EventOutput, 0, true},
		{job.EventStepEnd, 0, true},
		{job.EventStepRetry, 0, true},
		{job.EventOutput, 3, true},
		{job.EventClaimed, 0, false},
		{job.EventPhase, 0, false},
		{job.EventRetry, 0, false},
		{job.EventFinished, 0, false},
		{job.EventDropped, 0, true},
	} {
		code := 0
		e := job.Event{
			JobID: "J", Seq: 1, Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Kind: tc.kind, Step: tc.step, Name: "n",
			Data: []byte("x"), ExitCode: &code, Text: "t",
		}
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(data), `"step":`); got != tc.want {
			t.Errorf("%s of step %d: got %s, want a step: %t", tc.kind, tc.step, data, tc.want)
		}
		var back job.Event
		if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("%s: read back %+v, %v, want %+v", tc.kind, back, err, e)
		}
	}
}
