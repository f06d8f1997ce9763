package natsqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/internal/hint"
	"slipway/internal/size"
	"slipway/job/natsqueue/internal/jsconn"
)

// StreamUse is how much of its room a stream uses.
type StreamUse struct {
	// Stream is its name on the server.
	Stream string
	// Part is what it is for: jobs, scheduled, results, dead, events, records or workers.
	Part string
	// Rolls says that its oldest messages go when it is at its limit. All others then take no more.
	Rolls bool
	// Bytes is what its messages take, and MaxBytes what they may take. 0: it has no limit, so that it can take the room of
	// all others.
	Bytes, MaxBytes int64
	// Msgs is how many messages it has, and MaxMsgs how many it may have, 0 for no limit.
	Msgs, MaxMsgs int64
}

// String describes u in one line.
func (u StreamUse) String() string {
	most := "no limit"
	if u.MaxBytes > 0 {
		most = mib(u.MaxBytes)
	}
	text := fmt.Sprintf("%s has %s of %s", u.Stream, mib(u.Bytes), most)
	if u.MaxMsgs > 0 {
		text += fmt.Sprintf(" and %d of %d jobs", u.Msgs, u.MaxMsgs)
	}
	return text
}

// mib writes n as people want to read it: exact where it is a limit, else rounded.
func mib(n int64) string {
	if n == 0 || n%(1<<20) == 0 {
		return size.Format(n)
	}
	return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
}

// StoreUse tells how much room the streams of the queue use, those that have least left first. It leaves out those that are
// not there, and those that the account may not look at.
func (c *Conn) StoreUse(ctx context.Context) ([]StreamUse, error) { return c.rooms.all(ctx) }

// rooms knows how much room the streams of one queue have, and what to do when there is none.
type rooms struct {
	names  names
	cfg    Config
	js     *jsconn.Conn
	latest latestUse
}

func (r *rooms) all(ctx context.Context) ([]StreamUse, error) {
	all := layout(r.names, r.cfg)
	uses, errs := make([]*StreamUse, len(all)), make([]error, len(all))
	var looks sync.WaitGroup
	for i := range all {
		looks.Go(func() { uses[i], errs[i] = r.use(ctx, all[i].Name) })
	}
	looks.Wait()
	var found []StreamUse
	for _, u := range uses {
		if u != nil {
			found = append(found, *u)
		}
	}
	slices.SortStableFunc(found, func(a, b StreamUse) int { return cmp.Compare(b.share(), a.share()) })
	if err := errors.Join(errs...); err != nil {
		return found, fmt.Errorf("look at the room of the streams: %w", err)
	}
	return found, nil
}

// share is how full u is, from 0 to 1. Without a limit it is 0.
func (u StreamUse) share() float64 {
	of := func(n, most int64) float64 {
		if most <= 0 {
			return 0
		}
		return float64(n) / float64(most)
	}
	return max(of(u.Bytes, u.MaxBytes), of(u.Msgs, u.MaxMsgs))
}

// NearlyFull reports whether u will soon take no more.
func (u StreamUse) NearlyFull() bool {
	most := nearlyFull
	if u.Part == partRecords {
		most *= 1 - 1.0/reserveShare // new jobs are refused from there on
	}
	return !u.Rolls && u.share() > most
}

// nearlyFull is the share of its room that a stream may use without a word.
const nearlyFull = 0.8

const partRecords = "records"

// part is what a stream is for.
func partOf(n names, stream string) string {
	switch stream {
	case n.jobs():
		return "jobs"
	case n.sched():
		return "scheduled"
	case n.results():
		return "results"
	case n.dead():
		return "dead"
	case n.events():
		return "events"
	case "KV_" + n.records():
		return partRecords
	}
	return "workers"
}

// use looks at one stream. It returns nil for one that is not there or that the account may not look at.
func (r *rooms) use(ctx context.Context, stream string) (*StreamUse, error) {
	info, err := r.js.Stream(stream).Look(ctx)
	if err != nil || info == nil {
		return nil, err
	}
	u := &StreamUse{
		Stream: stream, Part: partOf(r.names, stream), Rolls: stream == r.names.results() || stream == r.names.events(),
		Bytes: int64(info.State.Bytes), MaxBytes: max(0, jsconn.MaxBytes(info.Config)),
		Msgs: int64(info.State.Msgs), MaxMsgs: max(0, info.Config.MaxMsgs),
	}
	if stream == r.names.jobs() { // one message is no job
		u.Msgs, u.MaxMsgs = max(0, u.Msgs-floorMsgs), max(0, u.MaxMsgs-floorMsgs)
	}
	return u, nil
}

// explainTime bounds the look at what is full.
const explainTime = 2 * time.Second

// explain adds to an error of a store that is full how much of what is used, and what to do. Every other error it returns
// as it is.
func (r *rooms) explain(ctx context.Context, err error) error {
	full, ok := errors.AsType[*FullError](err)
	if !ok {
		return err
	}
	if full.Detail != "" {
		return hint.With(err, "%s", r.advice(full))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTime)
	defer cancel()
	uses, _ := r.all(ctx) // what could be read is better than nothing
	var parts []string
	for _, u := range uses {
		if full.Store || u.Stream == full.Stream {
			parts = append(parts, u.String())
		}
	}
	return hint.With(detailed(err, full, strings.Join(parts, ", ")), "%s", r.advice(full))
}

// advice is what to do about full.
func (r *rooms) advice(full *FullError) string {
	switch {
	case full.Store:
		return "cancel jobs that wait and drop dead letters, delete what else lies in the store, or enlarge it (max_file_store of nats-server, or the account's limit); give a stream without a limit one (Limits, SetLimits)"
	case full.Stream == r.names.jobs():
		return "try again when workers have caught up, cancel jobs that wait, or raise MaxJobs or MaxJobBytes (SetLimits)"
	case full.Stream == r.names.sched():
		return "cancel jobs that wait for their time, or raise MaxScheduledBytes (SetLimits)"
	case full.Stream == r.names.dead():
		return "requeue or drop dead letters, or raise DeadBytes (SetLimits)"
	case full.Stream == "KV_"+r.names.records():
		return "wait until records of decided jobs have expired (ResultsAge), or raise RecordsBytes (SetLimits)"
	}
	return "raise the limit of stream " + full.Stream
}

// detailed adds detail to full, and to the text of err, which was made before.
func detailed(err error, full *FullError, detail string) error {
	if full.Detail = detail; detail == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, detail)
}

// roomAge is how long what is known of the records' room is believed: the records of jobs that are accepted meanwhile are
// written when a worker takes them, within their reserve.
const roomAge = time.Second

// latestUse remembers how much the records use, so that a producer of many jobs does not ask for each of them.
type latestUse struct {
	mu    sync.Mutex
	at    time.Time
	known *StreamUse
}

// records returns how much the records use, at most roomAge ago. Nil: that can't be told.
func (r *rooms) records(ctx context.Context) (*StreamUse, error) {
	r.latest.mu.Lock()
	defer r.latest.mu.Unlock()
	if !r.latest.at.IsZero() && time.Since(r.latest.at) < roomAge {
		return r.latest.known, nil
	}
	u, err := r.use(ctx, "KV_"+r.names.records())
	if err == nil {
		r.latest.known, r.latest.at = u, time.Now()
	}
	return u, err
}

// admit refuses a new job that would take room which the jobs that are accepted already need, or which its stream must not
// have. Whoever can't look at the streams is not kept from submitting by that: an account may lack the right, and if the
// server does not answer, the submission itself says so.
func (r *rooms) admit(ctx context.Context, bytes int, scheduled bool) error {
	use, err := r.records(ctx)
	if err == nil && use != nil && use.MaxBytes > 0 && use.Bytes > use.MaxBytes-use.MaxBytes/reserveShare {
		return &FullError{Stream: use.Stream, Detail: use.String() + ", the rest is kept for jobs that were accepted already"}
	}
	if !scheduled {
		return nil // the server itself refuses what JOBS has no room for
	}
	use, err = r.use(ctx, r.names.sched())
	if err == nil && use != nil && use.MaxBytes > 0 && use.Bytes+int64(bytes) > use.MaxBytes {
		return &FullError{Stream: use.Stream, Detail: use.String()}
	}
	return nil
}

// reserveShare is the share of the records' room, one in so many, that new jobs may not touch: a commit writes its result
// into the record, of up to a MiB.
const reserveShare = 4

// unreserved says how much room the queue wants, if err says that the server has less.
func (r *rooms) unreserved(err error) error {
	full, ok := errors.AsType[*FullError](err)
	if !ok {
		return err
	}
	var all, own int64
	for _, s := range layout(r.names, r.cfg) {
		all += max(s.MaxBytes, 0)
		if s.Name == full.Stream {
			own = s.MaxBytes
		}
	}
	err = detailed(err, full, "it may have "+size.Format(own)+", all streams of the queue together "+size.Format(all))
	return hint.With(err, "lower the limits (MaxJobBytes, MaxScheduledBytes, EventsBytes, ResultsBytes, DeadBytes, RecordsBytes), or give the server or the account a larger store (max_file_store of nats-server). A stream that was made by this try keeps its limit until SetLimits")
}
