package metrics

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// StreamUse is how much of its room a part of the queue uses.
type StreamUse struct {
	// Part is jobs, scheduled, results, dead, events, records or workers. Another word is counted as "other".
	Part string
	// Bytes is what it uses, and MaxBytes what it may use, 0 for no limit.
	Bytes, MaxBytes int64
}

// RoomCollector makes a collector that calls uses at each scrape and waits up to 3 s for the answer. ctx is the life of the
// program. If uses fails, that scrape has no values. uses must return when its context ends.
func RoomCollector(ctx context.Context, uses func(context.Context) ([]StreamUse, error)) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_queue_"+name, help, []string{"part"}, nil)
	}
	return &roomCollector{
		ctx: ctx, uses: uses, parts: words("jobs", "scheduled", "results", "dead", "events", "records", "workers"),
		bytes: desc("stored_bytes", "Bytes that a part of the queue has in the store of NATS."),
		most:  desc("limit_bytes", "Bytes that a part of the queue may have. None for a part without a limit."),
	}
}

type roomCollector struct {
	ctx         context.Context
	mu          sync.Mutex // one scrape asks at a time
	uses        func(context.Context) ([]StreamUse, error)
	parts       list
	bytes, most *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *roomCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.bytes
	ch <- c.most
}

// Collect implements prometheus.Collector.
func (c *roomCollector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.ctx, depthTimeout)
	defer cancel()
	uses, err := c.uses(ctx)
	if err != nil {
		return
	}
	seen := map[string]bool{} // a metric that comes twice would make the whole scrape fail
	for _, u := range uses {
		part := c.parts.label(u.Part)
		if seen[part] {
			continue
		}
		seen[part] = true
		ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(u.Bytes), part)
		if u.MaxBytes > 0 {
			ch <- prometheus.MustNewConstMetric(c.most, prometheus.GaugeValue, float64(u.MaxBytes), part)
		}
	}
}

// OutboxUse is what a worker's outbox has, and what became of what it had.
type OutboxUse struct {
	// Waiting is how many results are kept now.
	Waiting int
	// Committed, Late and Lost count the results that left it, since the start: into the queue, dropped since another attempt
	// was faster, and those that could not be kept or read.
	Committed, Late, Lost uint64
}

// OutboxCollector makes a collector of an outbox. use is called at each scrape.
func OutboxCollector(use func() OutboxUse) prometheus.Collector {
	return &outboxCollector{
		use:     use,
		waiting: prometheus.NewDesc(namespace+"_outbox_results", "Finished results that the queue did not take, kept on the worker's disk.", nil, nil),
		ended:   prometheus.NewDesc(namespace+"_outbox_ended_total", "Kept results by what became of them.", []string{"end"}, nil),
	}
}

type outboxCollector struct {
	use            func() OutboxUse
	waiting, ended *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *outboxCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.waiting
	ch <- c.ended
}

// Collect implements prometheus.Collector.
func (c *outboxCollector) Collect(ch chan<- prometheus.Metric) {
	u := c.use()
	ch <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(u.Waiting))
	for end, n := range map[string]uint64{"committed": u.Committed, "late": u.Late, "lost": u.Lost} {
		ch <- prometheus.MustNewConstMetric(c.ended, prometheus.CounterValue, float64(n), end)
	}
}
