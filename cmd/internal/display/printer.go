package display

import (
	"encoding/json"
	"fmt"
	"io"

	"slipway/job"
)

// Printer is told what happens to one job. Its methods are called from one
// goroutine at a time.
type Printer interface {
	// Submitted: the job j was accepted.
	Submitted(j *job.Job)
	// Note is a remark of the program itself.
	Note(format string, args ...any)
	// Event is one piece of news.
	Event(e job.Event)
	// Result ends the job.
	Result(r *job.Result)
}

// Options say where and how to print.
type Options struct {
	// Out gets what the job prints to its stdout, Err its stderr and everything that slipway says.
	Out, Err io.Writer
	// Color allows colors on Err.
	Color bool
	// Raw passes the job's output on as it is. Else it passes a Cleaner.
	Raw bool
	// Quote puts a bar before each line of output, so that none can pass for one of ours. Not with Raw.
	Quote bool
}

// JSON prints one JSON object a line to Out: every piece of news has a "kind", as
// in job.Event, and the first one is a Submission; the last line is the job.Result, which has
// none. Remarks go to Err as text.
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
	_, _ = p.opts.Out.Write(append(b, '\n')) // a reader that went away ends us by SIGPIPE
}

func queueOf(j *job.Job) string {
	if j.Queue == "" {
		return job.DefaultQueue
	}
	return j.Queue
}
