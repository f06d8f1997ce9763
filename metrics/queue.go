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
	// maxQueues bounds the values of the label queue. Further queues are added up as "other".
	maxQueues = 100
)

// Depth counts the jobs of one priority in one queue.
type Depth struct {
	// Queue is a name that the operator configured, or that a producer made up for jobs that no worker serves.
	Queue string
	// Priority is high, normal or low. Another word is counted as "other".
	Priority string
	// Pending counts jobs that no worker has, InFlight those that one has.
	Pending, InFlight int
	// Oldest is how long the oldest pending job has waited, and 0 if no job is pending.
	Oldest time.Duration
}

// QueueCollector makes a collector that calls depths at each scrape and waits up
// to 3 s for the answer. ctx is the life of the program. Register the collector with
// the registry that is scraped.
//
// If depths fails, slipway_queue_scrape_success is 0 and that scrape has no depths,
// since those of an earlier scrape may be wrong by now. depths must return when its
// context ends. The collector makes one call at a time.
func QueueCollector(ctx context.Context, depths func(context.Context) ([]Depth, error)) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_queue_"+name, help, []string{"queue", "priority"}, nil)
	}
	return &queueCollector{
		ctx: ctx, depths: depths, priorities: words(job.Priorities()...),
		pending:  desc("pending_jobs", "Jobs that wait for a worker."),
		inFlight: desc("in_flight_jobs", "Jobs that a worker has."),
		oldest:   desc("oldest_age_seconds", "How long the oldest waiting job has waited."),
		success: prometheus.NewDesc(namespace+"_queue_scrape_success",
			"1 if the queue told its depth to this scrape, 0 if not.", nil, nil),
	}
}

// QueueErrors makes a collector of slipway_queue_errors_total. count returns how many errors the queue's background had
// since the start; it is called at each scrape.
func QueueErrors(count func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: namespace, Name: "queue_errors_total",
		Help: "Errors in the queue's background: no connection, missing rights, a deleted stream, messages that can't be read.",
	}, func() float64 { return float64(count()) })
}

type queueCollector struct {
	ctx        context.Context
	mu         sync.Mutex // one scrape asks at a time
	depths     func(context.Context) ([]Depth, error)
	priorities list

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
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, key.queue, key.priority)
		}
		send(c.pending, float64(d.Pending))
		send(c.inFlight, float64(d.InFlight))
		send(c.oldest, seconds(d.Oldest))
	}
}

type depthKey struct{ queue, priority string }

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
		key := depthKey{strings.ToValidUTF8(d.Queue, "?"), c.priorities.label(d.Priority)}
		sum := out[key]
		sum.Pending += d.Pending
		sum.InFlight += d.InFlight
		sum.Oldest = max(sum.Oldest, d.Oldest)
		out[key] = sum
	}
	return out
}
