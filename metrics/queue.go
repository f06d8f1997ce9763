package metrics

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"slipway/job"
)

const (
	// depthTimeout is how long one scrape waits for the queue. Prometheus itself gives up after 10 s.
	depthTimeout = 3 * time.Second
	// maxQueues bounds the label queue. More of them are added up as "other".
	maxQueues = 100
)

// Depth is what waits in one class of one queue.
type Depth struct {
	// Queue is a name that the operator configured.
	Queue string
	// Class is a priority: high, normal or low.
	Class string
	// Pending counts jobs that no worker has, InFlight those that one has.
	Pending, InFlight int
	// Oldest is how long the oldest pending job has waited, 0 if there is none.
	Oldest time.Duration
}

// QueueCollector asks depths for the state of the queue at each scrape, and
// waits 3 s for the answer; ctx is the life of the program. Register it with the
// registry that is scraped.
//
// If depths fails, slipway_queue_scrape_success is 0 and the depths are missing
// from that scrape: an old number would be a lie. depths must return when its
// context ends; one call runs at a time.
func QueueCollector(ctx context.Context, depths func(context.Context) ([]Depth, error)) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_queue_"+name, help, []string{"queue", "class"}, nil)
	}
	return &queueCollector{
		ctx: ctx, depths: depths, classes: words(job.Priorities()...),
		pending:  desc("pending_jobs", "Jobs that wait for a worker."),
		inFlight: desc("in_flight_jobs", "Jobs that a worker has."),
		oldest:   desc("oldest_age_seconds", "How long the oldest waiting job has waited."),
		success: prometheus.NewDesc(namespace+"_queue_scrape_success",
			"1 if the queue told its depth to this scrape, 0 if not.", nil, nil),
	}
}

type queueCollector struct {
	ctx     context.Context
	mu      sync.Mutex
	depths  func(context.Context) ([]Depth, error)
	classes list

	pending, inFlight, oldest, success *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.pending, c.inFlight, c.oldest, c.success} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.ctx, depthTimeout)
	defer cancel()
	depths, err := c.depths(ctx)
	if err != nil {
		ch <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, 0)
		return
	}
	ch <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, 1)
	for key, d := range c.merge(depths) {
		send := func(desc *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, key.queue, key.class)
		}
		send(c.pending, float64(d.Pending))
		send(c.inFlight, float64(d.InFlight))
		send(c.oldest, seconds(d.Oldest))
	}
}

type depthKey struct{ queue, class string }

// merge adds up the depths with the same labels: a metric that comes twice
// would make the whole scrape fail.
func (c *queueCollector) merge(depths []Depth) map[depthKey]Depth {
	queues := make(map[string]bool)
	out := make(map[depthKey]Depth)
	for _, d := range depths {
		if !queues[d.Queue] && len(queues) >= maxQueues {
			d.Queue = other
		} else {
			queues[d.Queue] = true
		}
		key := depthKey{strings.ToValidUTF8(d.Queue, "?"), c.classes.label(d.Class)}
		sum := out[key]
		sum.Pending += d.Pending
		sum.InFlight += d.InFlight
		sum.Oldest = max(sum.Oldest, d.Oldest)
		out[key] = sum
	}
	return out
}
