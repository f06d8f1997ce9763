package natsqueue

import (
	"fmt"
	"strconv"
	"strings"

	"slipway/job"
)

// names makes every subject, stream and bucket name of one prefix.
type names string

func (n names) jobs() string    { return string(n) + "-JOBS" }
func (n names) sched() string   { return string(n) + "-SCHED" }
func (n names) results() string { return string(n) + "-RESULTS" }
func (n names) dead() string    { return string(n) + "-DEAD" }
func (n names) events() string  { return string(n) + "-EVENTS" }

func (n names) records() string { return string(n) + "-jobs" }
func (n names) workers() string { return string(n) + "-workers" }

// bucket is the stream behind a key-value bucket.
func bucket(name string) string { return "KV_" + name }

// key is the subject of a key.
func key(bucket, k string) string { return "$KV." + bucket + "." + k }

func (n names) lane(queue string, class job.Priority) string {
	return fmt.Sprintf("%s.J.%s.%s.*", n, queue, class)
}

func laneName(queue string, class job.Priority) string { return queue + "_" + string(class) }

func (n names) token(queue string, class job.Priority, id job.ID) string {
	return fmt.Sprintf("%s.J.%s.%s.%s", n, queue, class, id)
}

func (n names) anyToken(id job.ID) string { return fmt.Sprintf("%s.J.*.*.%s", n, id) }

func (n names) wait(id job.ID, gen int, fence uint64) string {
	return fmt.Sprintf("%s.D.wait.%s.%d.%d", n, id, gen, fence)
}

func (n names) anyWait(id job.ID) string { return fmt.Sprintf("%s.D.wait.%s.*.*", n, id) }

func (n names) due(queue string, class job.Priority, id job.ID) string {
	return fmt.Sprintf("%s.D.due.%s.%s.%s", n, queue, class, id)
}

func (n names) anyDue(id job.ID) string { return fmt.Sprintf("%s.D.due.*.*.%s", n, id) }

func (n names) result(queue string, id job.ID, gen int) string {
	return fmt.Sprintf("%s.R.%s.%s.%d", n, queue, id, gen)
}

func (n names) anyResult(id job.ID) string { return fmt.Sprintf("%s.R.*.%s.*", n, id) }

func (n names) letter(queue string, id job.ID, gen int) string {
	return fmt.Sprintf("%s.X.%s.%s.%d", n, queue, id, gen)
}

func (n names) anyLetter(id job.ID) string { return fmt.Sprintf("%s.X.*.%s.*", n, id) }

func (n names) event(worker string, id job.ID, gen int) string {
	return fmt.Sprintf("%s.E.%s.%s.%d", n, worker, id, gen)
}

func (n names) anyEvent(id job.ID) string { return fmt.Sprintf("%s.E.*.%s.*", n, id) }

func (n names) control(worker string) string { return fmt.Sprintf("%s.C.%s", n, worker) }

// parseLane splits <prefix>.J.<queue>.<class>.<id>, and <prefix>.D.due.<queue>.<class>.<id>
// alike. The id may be anything: subjects are written by others, too.
func (n names) parseLane(subject string) (queue string, class job.Priority, id job.ID, ok bool) {
	rest, ok := strings.CutPrefix(subject, string(n)+".J.")
	if !ok {
		if rest, ok = strings.CutPrefix(subject, string(n)+".D.due."); !ok {
			return "", "", "", false
		}
	}
	parts := strings.SplitN(rest, ".", 3)
	if len(parts) != 3 {
		return "", "", "", false
	}
	return parts[0], job.Priority(parts[1]), job.ID(parts[2]), true
}

// parseKept splits the subjects of results and dead letters: <prefix>.<R|X>.<queue>.<id>.<gen>.
func (n names) parseKept(subject string) (queue string, id job.ID, gen int, ok bool) {
	rest, ok := strings.CutPrefix(subject, string(n)+".")
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 4 {
		return "", "", 0, false
	}
	gen, err := strconv.Atoi(parts[3])
	return parts[1], job.ID(parts[2]), gen, err == nil
}

// classes in the order in which they are served.
var classes = []job.Priority{job.PriorityHigh, job.PriorityNormal, job.PriorityLow}

// classOf is the lane for a job's priority.
func classOf(p job.Priority) job.Priority {
	if p == "" {
		return job.PriorityNormal
	}
	return p
}

// queueOf is the queue for a job.
func queueOf(q string) string {
	if q == "" {
		return job.DefaultQueue
	}
	return q
}
