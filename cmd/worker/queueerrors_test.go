package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"slipway/test/eventually"
)

// TestQueueErrors: the first ones are in the log, a flood is not, and all are counted.
func TestQueueErrors(t *testing.T) {
	var out eventually.Buffer
	e := newQueueErrors(newLogger(logConfig{level: "info", format: "json"}, &out))
	e.note(errors.New("denied"))
	if !strings.Contains(out.String(), `"error":"denied"`) {
		t.Errorf("log: got %s, want the error", out.String())
	}
	for range 98 {
		e.note(errors.New("denied"))
	}
	if got := strings.Count(out.String(), "denied"); got != loudErrors {
		t.Errorf("lines of 99 errors: got %d, want %d", got, loudErrors)
	}
	if got := testutil.ToFloat64(e.collector()); got != 99 {
		t.Errorf("slipway_queue_errors_total: got %v, want 99", got)
	}
}
