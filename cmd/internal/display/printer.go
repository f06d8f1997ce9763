package display

import (
	"encoding/json"
	"fmt"
	"io"

	"slipway/job"
)

// Printer prints what happens to one job. Its methods are called from one
// goroutine at a time.
type Printer interface {
	// Submitted prints that the job j was accepted.
	Submitted(j *job.Job)
	// Note prints a remark of the program itself.
	Note(format string, args ...any)
	// Event prints one event of the job.
	Event(e job.Event)
	// Result prints the job's result. It is the last call.
	Result(r *job.Result)
}

// Options say where and how to print.
type Options struct {
	// Out gets what the job prints to its stdout. Err gets the job's stderr and everything that slipway itself prints.
	Out, Err io.Writer
	// Color allows colors on Err.
	Color bool
	// Raw prints the job's output as it is. Without Raw the output passes a sanitize.Filter.
	Raw bool
	// Quote puts a bar before each line of the job's output, so that a job can't imitate a line of slipway. It has no effect with Raw.
	Quote bool
	// Timestamps puts the time before each line of the job's output, in UTC, at which the line began; a dash where it is not known.
	// JSON has it in every event.
	Timestamps bool
}

// JSON prints one JSON object a line to Out: first a Submission if this program submitted the
// job, then the job's events, and last the job.Result. All but the result have a "kind".
// Remarks go to Err as text.
type JSON struct{ opts Options }

// NewJSON returns a Printer of JSON lines.
func NewJSON(opts Options) *JSON { return &JSON{opts: opts} }

// Submission is the first line of a job that this program submitted.
type Submission struct {
	Kind  string `json:"kind"` // always "submitted"
	JobID job.ID `json:"job_id"`
	Name  string `json:"name,omitempty"`
	Queue string `json:"queue"`
}

// NewSubmission describes j, which was accepted.
func NewSubmission(j *job.Job) Submission {
	return Submission{Kind: "submitted", JobID: j.ID, Name: j.Name, Queue: queueOf(j)}
}

// Submitted prints a Submission.
func (p *JSON) Submitted(j *job.Job) { p.line(NewSubmission(j)) }

// Note prints text to Err.
func (p *JSON) Note(format string, args ...any) { fmt.Fprintf(p.opts.Err, format+"\n", args...) }

// Event prints e; the bytes of its output are in base64.
func (p *JSON) Event(e job.Event) { p.line(e) }

// Result prints r.
func (p *JSON) Result(r *job.Result) { p.line(r) }

func (p *JSON) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		fmt.Fprintf(p.opts.Err, "encode %T: %v\n", v, err)
		return
	}
	_, _ = p.opts.Out.Write(append(b, '\n')) // if the reader has gone, SIGPIPE ends the program
}

func queueOf(j *job.Job) string {
	if j.Queue == "" {
		return job.DefaultQueue
	}
	return j.Queue
}
