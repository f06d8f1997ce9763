package main

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"slipway/metrics"
)

// queueErrors makes what goes wrong in the queue's background heard: nothing else tells an operator of denied rights, of a
// partition, or of messages that can't be read.
type queueErrors struct {
	log   *zap.Logger
	count atomic.Uint64
}

// A queue that is away has every slot fail every second: the log gets the first loudErrors of each loudEvery, and of the
// rest one in a hundred. The metric counts all.
const (
	loudErrors = 10
	loudEvery  = time.Minute
)

func newQueueErrors(log *zap.Logger) *queueErrors {
	quieter := zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, loudEvery, loudErrors, 100)
	})
	return &queueErrors{log: log.WithOptions(quieter)}
}

// note is natsqueue.Config.OnError.
func (e *queueErrors) note(err error) {
	e.count.Add(1)
	e.log.Warn("queue", zap.Error(err))
}

// collector shows how many there were.
func (e *queueErrors) collector() prometheus.Collector { return metrics.QueueErrors(e.count.Load) }
