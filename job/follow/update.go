package follow

import "slipway/job"

// Update is a piece of news about a job: an Event, Gap, Waiting, Disconnected,
// Reconnected or Ended. The list may grow; a switch ignores the types that it does
// not know.
type Update interface{ update() }

// Event is an event of the job. Each one is yielded once, in the order in which its
// attempt sent them. An event of an attempt comes never after one of a later attempt.
type Event struct{ job.Event }

// Gap says that events are missing before the next Event. The queue keeps events for a limited time, and a worker does not
// repeat those that it could not send.
type Gap struct {
	// Generation and Attempt are those of the missing events.
	Generation, Attempt int
	// Missing counts the events. It is 0 if the number is unknown: then the only
	// event of the attempt is its end, which the queue may have made from the result.
	Missing uint64
}

// Waiting says that no event has come in the first ten seconds, and where the job
// stands. It is yielded at most once.
type Waiting struct {
	// Status is the job as the queue knows it, if Err is nil.
	Status job.Status
	// Err says why the queue could not tell the status. It is never job.ErrUnavailable,
	// which a Disconnected tells.
	Err error
}

// Disconnected says that the queue does not answer, or that its events can't be read.
// Job goes on trying.
type Disconnected struct {
	// Err is the last failure: job.ErrUnavailable if the queue does not answer.
	Err error
}

// Reconnected says that the queue answers again after a Disconnected.
type Reconnected struct{}

// Ended holds the result of the job.
type Ended struct{ Result *job.Result }

func (Event) update()        {}
func (Gap) update()          {}
func (Waiting) update()      {}
func (Disconnected) update() {}
func (Reconnected) update()  {}
func (Ended) update()        {}
