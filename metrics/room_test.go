package metrics

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRoomCollector(t *testing.T) {
	for _, tt := range []struct {
		name string
		uses []StreamUse
		err  error
		want map[string]float64
	}{
		{"no answer", []StreamUse{{Part: "jobs", Bytes: 1}}, errors.New("away"), map[string]float64{}},
		{"with and without a limit", []StreamUse{{Part: "jobs", Bytes: 1, MaxBytes: 2}, {Part: "scheduled", Bytes: 3}}, nil, map[string]float64{
			`slipway_queue_stored_bytes{part="jobs"}`:      1,
			`slipway_queue_limit_bytes{part="jobs"}`:       2,
			`slipway_queue_stored_bytes{part="scheduled"}`: 3,
		}},
		{"unknown parts", []StreamUse{{Part: "x", Bytes: 1}, {Part: "y", Bytes: 2}}, nil, map[string]float64{`slipway_queue_stored_bytes{part="other"}`: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reg := prometheus.NewPedanticRegistry()
			reg.MustRegister(RoomCollector(t.Context(), func(context.Context) ([]StreamUse, error) { return tt.uses, tt.err }))
			if got := series(t, reg); !maps.Equal(got, tt.want) {
				t.Errorf("series = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestOutboxCollector(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(OutboxCollector(func() OutboxUse { return OutboxUse{Waiting: 1, Committed: 2, Late: 3, Lost: 4} }))
	want := map[string]float64{
		"slipway_outbox_results{}":                    1,
		`slipway_outbox_ended_total{end="committed"}`: 2,
		`slipway_outbox_ended_total{end="late"}`:      3,
		`slipway_outbox_ended_total{end="lost"}`:      4,
	}
	if got := series(t, reg); !maps.Equal(got, want) {
		t.Errorf("series = %v, want %v", got, want)
	}
}
