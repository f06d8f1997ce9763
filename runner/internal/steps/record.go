package steps

import (
	"encoding/json"

	"slipway/job"
)

// recordBudget is how many bytes of JSON the first steps may take in a result, and the last ones, where nobody knows
// before how many there are. A message of the queue holds both, and the rest of a result.
const recordBudget = 256 << 10

// record keeps the results of steps: all of them, or those that fit at both ends.
type record struct {
	budget int // bytes of JSON for head and for tail; 0: all are kept

	head, tail []kept
	headFull   bool
	headBytes  int
	tailBytes  int
	elided     int // between head and tail
}

// kept is a result and its size.
type kept struct {
	result job.StepResult
	bytes  int
}

// add takes the result of the next step. logKey is where its log will be; it is not in the result yet.
func (r *record) add(s job.StepResult, logKey string) {
	if r.budget == 0 {
		r.head = append(r.head, kept{result: s})
		return
	}
	k := kept{s, encodedSize(s) + logSize(logKey)}
	if !r.headFull && (len(r.head) == 0 || r.headBytes+k.bytes <= r.budget) {
		r.head = append(r.head, k)
		r.headBytes += k.bytes
		return
	}
	r.headFull = true
	r.tail = append(r.tail, k)
	r.tailBytes += k.bytes
	for len(r.tail) > 1 && r.tailBytes > r.budget {
		r.tailBytes -= r.tail[0].bytes
		r.tail[0] = kept{} // for the garbage collector
		r.tail = r.tail[1:]
		r.elided++
	}
}

// logSize is what the fields of a log take once it is stored, or once it is known why it is not. A step without a key has
// them already.
func logSize(key string) int {
	const fields = 128
	if key == "" {
		return 0
	}
	return fields + max(len(key), maxNotStored)
}

func encodedSize(s job.StepResult) int {
	data, err := json.Marshal(s)
	if err != nil {
		return 0 // a StepResult holds nothing that can't be encoded
	}
	return len(data)
}

// all returns what is kept.
func (r *record) all() []job.StepResult {
	var all []job.StepResult
	for _, part := range [][]kept{r.head, r.tail} {
		for i := range part {
			all = append(all, part[i].result)
		}
	}
	return all
}
