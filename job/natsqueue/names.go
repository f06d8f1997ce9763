package natsqueue

import (
	"fmt"
	"strconv"
	"strings"

	"slipway/job"
)

// names makes every subject, stream and bucket name of one prefix.
type names string

// Streams.

func (n names) jobs() string    { return string(n) + "-JOBS" }
func (n names) sched() string   { return string(n) + "-SCHED" }
func (n names) results() string { return string(n) + "-RESULTS" }
func (n names) dead() string    { return string(n) + "-DEAD" }
func (n names) events() string  { return string(n) + "-EVENTS" }

// Buckets.

func (n names) records() string { return string(n) + "-jobs" }
func (n names) workers() string { return string(n) + "-workers" }

// Subjects. The any… forms match every queue, priority, worker, generation or fence.

func (n names) lane(queue string, priority job.Priority) string {
	return fmt.Sprintf("%s.J.%s.%s.*", n, queue, priority)
}

func laneName(queue string, priority job.Priority) string { return queue + "_" + string(priority) }

func (n names) token(queue string, priority job.Priority, id job.ID) string {
	return fmt.Sprintf("%s.J.%s.%s.%s", n, queue, priority, id)
}

// floor is a subject of JOBS that is in no lane: no queue's name can be an underscore.
func (n names) floor() string { return string(n) + ".J._._._" }

func (n names) anyToken(id job.ID) string { return fmt.Sprintf("%s.J.*.*.%s", n, id) }

func (n names) wait(id job.ID, gen int, fence uint64) string {
	return fmt.Sprintf("%s.D.wait.%s.%d.%d", n, id, gen, fence)
}

func (n names) anyWait(id job.ID) string { return fmt.Sprintf("%s.D.wait.%s.*.*", n, id) }

func (n names) due(queue string, priority job.Priority, id job.ID) string {
	return fmt.Sprintf("%s.D.due.%s.%s.%s", n, queue, priority, id)
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

// process is what one process of a worker's name answers on.
func (n names) process(worker, boot string) string { return fmt.Sprintf("%s.C.%s.%s", n, worker, boot) }

func (n names) control(worker string) string { return fmt.Sprintf("%s.C.%s", n, worker) }

// parseLane splits <prefix>.J.<queue>.<priority>.<id>, and <prefix>.D.due.<queue>.<priority>.<id>
// alike. The id may be anything: foreign programs publish here, too.
func (n names) parseLane(subject string) (queue string, priority job.Priority, id job.ID, ok bool) {
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

// priorities in the order in which they are served.
var priorities = []job.Priority{job.PriorityHigh, job.PriorityNormal, job.PriorityLow}

// priorityOf is the priority of a lane for a job's.
func priorityOf(p job.Priority) job.Priority {
	if p == "" {
		return job.PriorityNormal
	}
	return p
}

// queueOf is the queue of a job that names q.
func queueOf(q string) string {
	if q == "" {
		return job.DefaultQueue
	}
	return q
}
