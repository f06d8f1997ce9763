package runner

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/box"
	"slipway/runner/internal/steps"
	"slipway/runner/internal/translate"
	"slipway/runner/internal/verdict"
	"slipway/runner/internal/workspace"
	"slipway/runner/loop"
	wsync "slipway/sync"
)

// newAttempt makes the attempt of a claimed job.
func (w *Worker) newAttempt(lease job.Lease) *attempt {
	d := lease.Delivery()
	a := &attempt{
		worker: w, lease: lease, delivery: d,
		log: w.log.With(zap.String("job", string(d.ID)), zap.Int("attempt", d.Attempt),
			zap.Uint64("fence", d.Fence), zap.String("queue", d.Queue)),
		box: w.boxes.Box(box.Owner{
			Name: boxName(d), Key: container.LabelJob, Value: string(d.ID), Fence: d.Fence,
			Labels: map[string]string{container.LabelAttempt: strconv.Itoa(d.Attempt)},
		}),
	}
	if a.result.StartedAt = d.ClaimedAt; d.ClaimedAt.IsZero() {
		a.result.StartedAt = time.Now()
	}
	a.result.Store = w.cfg.StoreName
	wait := waited(d, a.result.StartedAt)
	a.result.Phases.Queue = job.Duration(wait)
	w.cfg.Observer.JobClaimed(d.Queue, wait)
	a.log.Info("attempt begins", zap.Duration("waited", wait))
	return a
}

// waited is how long the job could have begun before it did.
func waited(d job.Delivery, claimed time.Time) time.Duration {
	from := d.EligibleAt
	if from.IsZero() {
		from = d.SubmittedAt
	}
	if from.IsZero() {
		return 0
	}
	return max(claimed.Sub(from), 0)
}

// boxName is the name of an attempt's box. An attempt's number is never used twice within a generation, so a box of that
// name is this attempt's or nobody's.
func boxName(d job.Delivery) string {
	name := fmt.Sprintf("%s-%s-%d", container.Product, strings.ToLower(string(d.ID)), d.Attempt)
	if d.Generation > 1 {
		name += "-g" + strconv.Itoa(d.Generation)
	}
	return name
}

// matches checks that the spec speaks of the job that was claimed. Job.ID and Job.Queue are for the producer; a program
// that writes to the queue by itself can get them wrong, and would look for its job in vain.
func matches(j *job.Job, d job.Delivery) error {
	if j.ID != "" && j.ID != d.ID {
		return fmt.Errorf("id: the spec says %s, and the job was submitted as %s", j.ID, d.ID)
	}
	if j.Queue != "" && d.Queue != "" && j.Queue != d.Queue {
		return fmt.Errorf("queue: the spec says %s, and the job was submitted to %s", j.Queue, d.Queue)
	}
	return nil
}

// accept decodes the spec and checks what it asks for, before any engine or store is asked for anything.
func (a *attempt) accept() (loop.Decider, error) {
	j, err := job.Decode(a.delivery.Spec)
	if err != nil {
		return nil, &verdict.Fault{Reason: job.ReasonSpecInvalid, Final: true, Err: err}
	}
	if err := matches(j, a.delivery); err != nil {
		return nil, &verdict.Fault{Reason: job.ReasonSpecInvalid, Final: true, Err: err}
	}
	cfg := &a.worker.cfg
	a.job = j.WithDefaults()
	a.result.Name, a.result.Labels = j.Name, j.Labels
	if n := a.delivery.Counts.Infra; n > max(cfg.InfraBudget, 0) {
		// Only lost leases take a job beyond its budget: they are charged at the claim, where the budget is not known.
		return nil, &verdict.Fault{Reason: job.ReasonInfraBudget, Final: true, Err: fmt.Errorf("%d infrastructure failures (InfraBudget %d); this attempt did nothing", n, max(cfg.InfraBudget, 0))}
	}
	if err := a.admit(); err != nil {
		return nil, err
	}
	a.workspace = workspace.New(workspace.Config{
		Store: cfg.Store, Syncer: a.worker.syncer, Prefix: cfg.Prefix,
		Writer:  wsync.Writer{Worker: cfg.Name, Job: string(a.delivery.ID), Attempt: a.delivery.Attempt, Fence: a.delivery.Fence},
		Confirm: a.hold.confirm, Observer: cfg.Observer, Log: a.log,
	}, a.job)
	if cfg.Decider == nil {
		return loop.Script(a.job.Steps), nil
	}
	d, err := cfg.Decider(a.job.Clone())
	if d == nil && err == nil {
		err = errors.New("Config.Decider returned neither a decider nor an error")
	}
	if err != nil {
		return nil, &verdict.Fault{Reason: job.ReasonSpecInvalid, Final: true, Err: fmt.Errorf("make the job's decider: %w", err)}
	}
	return d, nil
}

// admit checks the job against the worker's policy, and makes the spec of its box. All that is refused is told at once.
func (a *attempt) admit() error {
	cfg := &a.worker.cfg
	spec, err := translate.Spec(a.job, cfg.Resources)
	if err != nil {
		return &verdict.Fault{Reason: job.ReasonSpecInvalid, Final: true, Err: err}
	}
	spec.Name, spec.DeadMan, spec.Lifetime = a.box.Name(), cfg.Timing.DeadMan, lifetime(cfg, a.job)
	var refused container.Denials
	if err := cfg.Policy.AllowsImage(a.job.Image); err != nil {
		d, ok := errors.AsType[*container.Denied](err)
		if !ok {
			return err
		}
		refused = append(refused, d)
	}
	a.spec, err = cfg.Policy.Apply(spec)
	beyond := denied(err)
	if err != nil && len(beyond) == 0 {
		return err
	}
	refused = append(refused, beyond...)
	for i := range a.job.Steps {
		err := a.checkUser(&a.job.Steps[i], fmt.Sprintf("steps[%d].user", i))
		if d, ok := errors.AsType[*container.Denied](err); ok {
			refused = append(refused, d)
		} else if err != nil {
			return err
		}
	}
	for _, r := range a.spec.Relaxed {
		a.result.Relaxed = append(a.result.Relaxed, string(r))
	}
	return refusal(cfg, a.job, refused)
}

// refusal is the error of what the policy refused, and of a store that j needs and this worker lacks. Nil if that is
// nothing.
func refusal(cfg *Config, j *job.Job, refused container.Denials) error {
	var store error
	if cfg.Store == nil {
		store = needsStore(j)
	}
	switch {
	case len(refused) == 0:
		return store
	case store == nil:
		return refused
	}
	return fmt.Errorf("%w; %w", refused, store)
}

// needsStore says what of j needs a store.
func needsStore(j *job.Job) error {
	const advice = "this worker has no store configured: send the job to a queue whose workers have one, or have its owner set s3.bucket"
	if j.Workspace != nil && j.Workspace.Prefix != "" {
		return &verdict.Fault{Reason: job.ReasonPolicyDenied, Err: errors.New("workspace: " + advice)}
	}
	for i := range j.Inputs {
		if j.Inputs[i].Key != "" {
			return &verdict.Fault{Reason: job.ReasonPolicyDenied, Err: fmt.Errorf("inputs[%d].key: %s", i, advice)}
		}
	}
	return nil
}

// denied lists what err refused, by the job's field where the policy names the box's.
func denied(err error) container.Denials {
	var refused container.Denials
	errors.As(err, &refused)
	for i, d := range refused {
		if d.Field != "relaxed" {
			continue
		}
		field := "relax"
		if d.Key == string(container.RelaxRootSteps) {
			field = "user" // which is how a job asks for it
		}
		refused[i] = &container.Denied{Field: field, Key: d.Key, Detail: d.Detail}
	}
	return refused
}

// checkUser refuses what the box's spec can't show: a step that wants to be root in a box that is not. Whether a root of
// the box is granted is said of the job's user, once.
func (a *attempt) checkUser(s *job.Step, field string) error {
	user, err := translate.User(s.User)
	if err != nil {
		return &verdict.Fault{Reason: job.ReasonSpecInvalid, Final: true, Err: fmt.Errorf("%s: %w", field, err)}
	}
	own, _ := translate.User(a.job.User) // translate.Spec has read it
	if s.User == "" || !isRoot(user) || isRoot(own) || slices.Contains(a.worker.cfg.Policy.Always, container.RelaxRootSteps) {
		return nil
	}
	return &container.Denied{
		Field: field, Key: string(container.RelaxRootSteps),
		Detail: "a step can be root only in a job whose own user is",
	}
}

func isRoot(u container.User) bool { return u.UID == 0 || u.GID == 0 }

// checkStep fills the defaults of a step that a Decider wants, and refuses what a job with it would be refused for.
func (a *attempt) checkStep(s *job.Step) error {
	if err := s.Validate(); err != nil {
		return err
	}
	alone := job.Job{User: a.job.User, Steps: []job.Step{*s}}
	name := s.Name
	*s = alone.WithDefaults().Steps[0]
	s.Name = name // else each would be called "1"
	return a.checkUser(s, "user")
}

// lifetime is how long the box may live at most: every clock of the attempt, one after the other. A command may take its
// grace twice: at the job's timeout, and at the end of EndingTime.
func lifetime(cfg *Config, j *job.Job) time.Duration {
	return box.CreateTimeout + 2*cfg.SyncTimeout + j.Timeout.Std() + steps.EndingTime + 2*job.MaxGrace + cfg.CleanupTimeout
}

// executorConfig is what the step loop works with.
func (a *attempt) executorConfig() steps.Config {
	cfg, d := &a.worker.cfg, a.delivery
	c := steps.Config{
		Box: a.box.Sandbox(), Destroy: a.box.Remove, DiskLimited: a.spec.Resources.Disk > 0,
		Events: a.events, Observer: cfg.Observer, Log: a.log, Excerpt: cfg.Excerpt,
		Logs: steps.Logs{
			Store: cfg.Store, Limit: cfg.StepLogLimit, Budget: cfg.JobLogLimit,
			Folder: fmt.Sprintf("%slogs/%s/%s/%d-%d/", cfg.Prefix, d.Queue, d.ID, d.Generation, d.Fence),
		},
	}
	if cfg.Decider != nil {
		c.Check, c.Observation = a.checkStep, cfg.Observation
	}
	return c
}
