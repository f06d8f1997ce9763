// Package follow shows a program what happens to a job, from its first event to
// its result, also while the queue's server is away for a time.
//
//	job.Client ──Follow──► events ─┐
//	           ──Result──► result ─┼─► Job ──► Event, Gap, Waiting, Disconnected, Reconnected … Ended
//	           ──Status──► probe ──┘
//
// After is Job from an event on, and Stored yields what is there now.
//
// A bare job.Client.Follow ends when its connection does, begins again with the
// first event when it is called again, and doesn't tell that events are missing. Job
// calls it again, yields each event once, and tells what is missing.
//
//	for u, err := range follow.Job(ctx, client, id) {
//		if err != nil {
//			return err
//		}
//		switch u := u.(type) {
//		case follow.Event:
//			os.Stdout.Write(u.Data) // only events of output have data
//		case follow.Ended:
//			fmt.Println(u.Result.Outcome)
//		}
//	}
//
// # Glossary
//
//   - Update: what Job yields; one of the six types below.
//   - Event: a job.Event, yielded once.
//   - Gap: events that are not kept any more, or that never reached the queue.
//   - Waiting: no event has come for ten seconds since Job began, with what the queue knows about the job.
//   - Disconnected, Reconnected: the queue does not answer, and answers again.
//   - Ended: the job's result. It is the last update.
//   - Probe: a call of Status when no event has come for five seconds. A client may wait in silence for a
//     server that is away; the answer to a probe tells that case from a job that prints nothing.
//
// # Rules
//
// Events may be lost, the result may not. So Job waits for the result as long as
// its context lives, and the result alone ends a job; events only show the way there.
package follow
