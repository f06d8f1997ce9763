package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func fixedDepth(d ...Depth) func(context.Context) ([]Depth, error) {
	return func(context.Context) ([]Depth, error) { return d, nil }
}

func TestQueueCollector(t *testing.T) {
	tests := []struct {
		name   string
		depths func(context.Context) ([]Depth, error)
		want   map[string]float64
	}{
		{"nothing waits", fixedDepth(), map[string]float64{"slipway_queue_scrape_success{}": 1}},
		{
			"no answer", func(context.Context) ([]Depth, error) { return []Depth{{Queue: "old"}}, errors.New("away") },
			map[string]float64{"slipway_queue_scrape_success{}": 0},
		},
		{"one", fixedDepth(Depth{Queue: "default", Priority: "low", Pending: 7, InFlight: 2, Oldest: time.Minute}), map[string]float64{
			"slipway_queue_scrape_success{}":                                   1,
			`slipway_queue_pending_jobs{priority="low",queue="default"}`:       7,
			`slipway_queue_in_flight_jobs{priority="low",queue="default"}`:     2,
			`slipway_queue_oldest_age_seconds{priority="low",queue="default"}`: 60,
		}},
		{"the same twice, an unknown priority, a broken name", fixedDepth(
			Depth{Queue: "a\xff", Priority: "??", Pending: 1, Oldest: time.Second},
			Depth{Queue: "a\xff", Priority: "!!", Pending: 2, Oldest: time.Hour, InFlight: 1},
		), map[string]float64{
			"slipway_queue_scrape_success{}":                                1,
			`slipway_queue_pending_jobs{priority="other",queue="a?"}`:       3,
			`slipway_queue_in_flight_jobs{priority="other",queue="a?"}`:     1,
			`slipway_queue_oldest_age_seconds{priority="other",queue="a?"}`: 3600,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reg := prometheus.NewPedanticRegistry()
			reg.MustRegister(QueueCollector(t.Context(), tt.depths))
			if got := series(t, reg); !maps.Equal(got, tt.want) {
				t.Errorf("series = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestQueueNamesAreBounded(t *testing.T) {
	var depths []Depth
	for n := range 10 * maxQueues {
		depths = append(depths, Depth{Queue: fmt.Sprintf("q%04d", n), Priority: "normal", Pending: 1})
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(QueueCollector(t.Context(), fixedDepth(depths...)))
	sum, n := 0.0, 0
	for key, v := range series(t, reg) {
		if strings.HasPrefix(key, "slipway_queue_pending_jobs") {
			sum, n = sum+v, n+1
		}
	}
	if n != maxQueues+1 || sum != 10*maxQueues {
		t.Errorf("%d series that add up to %v, want %d and %d", n, sum, maxQueues+1, 10*maxQueues)
	}
}

func TestQueueThatHangsDoesNotHoldTheScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(QueueCollector(t.Context(), func(ctx context.Context) ([]Depth, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}))
		start := time.Now()
		if got := series(t, reg)["slipway_queue_scrape_success{}"]; got != 0 {
			t.Errorf("success = %v, want 0", got)
		}
		if got := time.Since(start); got != depthTimeout {
			t.Errorf("the scrape took %v, want %v", got, depthTimeout)
		}
	})
}
