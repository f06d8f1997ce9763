package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
)

// createTimeout bounds the making and the start of one box.
const createTimeout = 2 * time.Minute

// accept decodes the spec and checks what it asks for, before any engine or
// store is asked for anything.
func (a *attempt) accept() error {
	j, err := job.Decode(a.d.Spec)
	if err != nil {
		return &fault{reason: job.ReasonSpecInvalid, final: true, err: err}
	}
	a.job = j.WithDefaults()
	a.size = excerptSize(a.w.cfg.Excerpt, len(a.job.Steps))
	a.result.Name, a.result.Labels = j.Name, j.Labels
	if n := a.d.Counts.Infra; n > max(a.w.cfg.InfraBudget, 0) {
		// Only lost leases get it so far: they are charged at the claim, where nobody knows the budget.
		return &fault{reason: job.ReasonInfraBudget, final: true, err: fmt.Errorf("%d infrastructure failures (InfraBudget %d); this attempt did nothing", n, max(a.w.cfg.InfraBudget, 0))}
	}
	return a.admit()
}

// admit checks the job against the worker's policy, and makes the spec of its box. All that is refused is told at once.
func (a *attempt) admit() error {
	spec, err := boxSpec(a.job, a.w.cfg.Resources)
	if err != nil {
		return &fault{reason: job.ReasonSpecInvalid, final: true, err: err}
	}
	spec.Name, spec.DeadMan, spec.Lifetime = a.boxName, a.w.cfg.Timing.DeadMan, a.lifetime()
	spec.Labels = a.labels()
	var refused container.Denials
	if err := a.w.cfg.Policy.AllowsImage(a.job.Image); err != nil {
		d, ok := errors.AsType[*container.Denied](err)
		if !ok {
			return err
		}
		refused = append(refused, d)
	}
	a.spec, err = a.w.cfg.Policy.Apply(spec)
	beyond := denied(err)
	if err != nil && len(beyond) == 0 {
		return err
	}
	refused = append(refused, beyond...)
	users, err := a.stepUsers()
	if err != nil {
		return err
	}
	refused = append(refused, users...)
	for _, r := range a.spec.Relaxed {
		a.result.Relaxed = append(a.result.Relaxed, string(r))
	}
	return a.refusal(refused)
}

// refusal is the error of what the policy refused, and of a store that is needed and not there. Nil if that is nothing.
func (a *attempt) refusal(refused container.Denials) error {
	var store error
	if a.w.cfg.Store == nil {
		store = needsStore(a.job)
	}
	switch {
	case len(refused) == 0:
		return store
	case store == nil:
		return refused
	}
	return fmt.Errorf("%w; %w", refused, store)
}

// excerptSize is what one of n steps may keep of its output's head, and of its
// tail: all of them must fit into one message of the queue.
func excerptSize(limit, n int) int {
	const all = 512 << 10 // bytes of JSON for all excerpts of one result
	return min(limit, all/(4*max(n, 1)))
}

// needsStore says what of j needs a store.
func needsStore(j *job.Job) error {
	const advice = "this worker has no store configured: send the job to a queue whose workers have one, or have its owner set s3.bucket (Config.Store in a program of one's own)"
	if j.Workspace != nil {
		return &fault{reason: job.ReasonPolicyDenied, err: errors.New("workspace: " + advice)}
	}
	for i := range j.Inputs {
		if j.Inputs[i].Key != "" {
			return &fault{reason: job.ReasonPolicyDenied, err: fmt.Errorf("inputs[%d].key: %s", i, advice)}
		}
	}
	return nil
}

// denied lists what err refused, by the job's field where the policy names the box's.
func denied(err error) container.Denials {
	var refused container.Denials
	errors.As(err, &refused)
	for i, d := range refused {
		if d.Field == "relaxed" {
			refused[i] = &container.Denied{Field: "user", Key: d.Key, Detail: d.Detail} // the only relaxation that a job's user asks for
		}
	}
	return refused
}

// stepUsers lists what boxSpec can't see: steps that want to be root in a box that is not. Whether a root of the box
// is granted is said of the job's user, once.
func (a *attempt) stepUsers() (refused container.Denials, err error) {
	own, _ := parseUser(a.job.User) // boxSpec has read it
	root := isRoot(own) || slices.Contains(a.w.cfg.Policy.Always, container.RelaxRootSteps)
	for i := range a.job.Steps {
		user := a.job.Steps[i].User
		u, err := parseUser(user)
		if err != nil {
			return nil, &fault{reason: job.ReasonSpecInvalid, final: true, err: fmt.Errorf("steps[%d].user: %w", i, err)}
		}
		if user != "" && isRoot(u) && !root {
			refused = append(refused, &container.Denied{
				Field: fmt.Sprintf("steps[%d].user", i), Key: string(container.RelaxRootSteps),
				Detail: "a step can be root only in a job whose own user is",
			})
		}
	}
	return refused, nil
}

func isRoot(u container.User) bool { return u.UID == 0 || u.GID == 0 }

// boxName is the name of an attempt's box. An attempt's number is never used
// twice within a generation, so a box of that name is this attempt's or nobody's.
func boxName(d job.Delivery) string {
	name := fmt.Sprintf("%s-%s-%d", container.Product, strings.ToLower(string(d.ID)), d.Attempt)
	if d.Generation > 1 {
		name += "-g" + strconv.Itoa(d.Generation)
	}
	return name
}

// boxSpec says what box j asks for. It is pure.
func boxSpec(j *job.Job, defaults container.Resources) (container.Spec, error) {
	user, err := parseUser(j.User)
	if err != nil {
		return container.Spec{}, fmt.Errorf("user: %w", err)
	}
	spec := container.Spec{
		Image: j.Image, Platform: j.Platform, User: user, Workdir: j.Workdir, Env: j.Env,
		Network: container.Network(j.Network), Resources: resources(j.Resources, defaults),
	}
	if user == (container.User{}) && j.User != "" {
		spec.Relaxed = []container.Relaxation{container.RelaxRootSteps} // else 0:0 would mean "nothing said"
	}
	return spec, nil
}

// resources are the job's, and the worker's defaults where the job says nothing.
func resources(r job.Resources, def container.Resources) container.Resources {
	return container.Resources{
		CPUs: r.CPUs, Memory: int64(r.Memory), Pids: r.Pids, Disk: int64(r.Disk), Tmp: int64(r.Tmp), Shm: int64(r.Shm),
	}.Or(def)
}

// parseUser reads "uid" or "uid:gid". A missing gid is the uid.
func parseUser(s string) (container.User, error) {
	if s == "" {
		return container.User{}, nil
	}
	uid, gid, both := strings.Cut(s, ":")
	if !both {
		gid = uid
	}
	u, err1 := strconv.ParseUint(uid, 10, 31)
	g, err2 := strconv.ParseUint(gid, 10, 31)
	if err1 != nil || err2 != nil {
		return container.User{}, fmt.Errorf("%.40q is not \"uid\" or \"uid:gid\"", s)
	}
	return container.User{UID: int(u), GID: int(g)}, nil
}

// lifetime is how long the box may live at most: every clock of the attempt, one after the other. A command may take
// its grace twice: at the job's timeout, and at the end of EndingTime.
func (a *attempt) lifetime() time.Duration {
	return createTimeout + 2*a.w.cfg.SyncTimeout + a.job.Timeout.Std() + EndingTime + 2*job.MaxGrace + a.w.cfg.CleanupTimeout
}

// expirySlack is how much later than its lifetime a box counts as expired: clocks of two hosts with one engine differ.
const expirySlack = 5 * time.Minute

func (a *attempt) labels() map[string]string {
	return map[string]string{
		container.LabelProduct: container.Product,
		container.LabelWorker:  a.w.cfg.Name,
		container.LabelHost:    a.w.host.name,
		container.LabelBoot:    a.w.host.boot,
		container.LabelJob:     string(a.d.ID),
		container.LabelAttempt: strconv.Itoa(a.d.Attempt),
		container.LabelFence:   strconv.FormatUint(a.d.Fence, 10),
	}
}

// setup lists the phases before the steps.
func (a *attempt) setup() []phase {
	p, cfg := &a.result.Phases, &a.w.cfg
	phases := []phase{
		{phasePullImage, &timeoutError{"the pull of the image (PullTimeout)", cfg.PullTimeout}, &p.PullImage, a.prepareImage},
		{phaseCreate, &timeoutError{"the start of the box", createTimeout}, &p.Create, a.createBox},
	}
	if a.job.Workspace != nil || len(a.job.Inputs) > 0 {
		limit := &timeoutError{"the pull of the workspace (SyncTimeout)", cfg.SyncTimeout}
		phases = append(phases, phase{phasePullWorkspace, limit, &p.PullWorkspace, a.fillWorkspace})
	}
	return phases
}

func (a *attempt) prepareImage(ctx context.Context) error {
	img, err := a.w.cfg.Provider.Prepare(ctx, container.ImageRequest{
		Image: a.job.Image, Platform: a.job.Platform, Pull: container.PullPolicy(a.job.Pull),
	})
	if err != nil {
		return fmt.Errorf("get image %s: %w", a.job.Image, err)
	}
	a.spec.Image = img.ID
	a.result.ImageDigest = img.Digest
	return nil
}

// createBox makes and starts the box. Its removal is registered first, and by
// name: an engine that answers too late may have made it all the same.
func (a *attempt) createBox(ctx context.Context) error {
	a.w.live.add(a.boxName)
	a.undo.add(func(ctx context.Context) error { return persist(ctx, a.removeBox) })
	if a.d.Fence > 1 {
		if err := a.removeEarlier(ctx); err != nil {
			a.log.Warn("remove the boxes of earlier attempts", zap.Error(err)) // the reaper does it
		}
	}
	// Now, not when the job was accepted: the pull of the image lies in between.
	a.spec.Labels[container.LabelExpires] = strconv.FormatInt(time.Now().Add(a.spec.Lifetime+expirySlack).Unix(), 10)
	sandbox, err := a.w.cfg.Provider.Create(ctx, a.spec)
	if err != nil {
		return fmt.Errorf("create box: %w", err)
	}
	a.box.Lock()
	a.sandbox = sandbox
	a.box.Unlock()
	if err := sandbox.Start(ctx); err != nil {
		return fmt.Errorf("start box: %w", err)
	}
	a.result.BoxID = sandbox.Info().ID
	return nil
}

func (a *attempt) removeBox(ctx context.Context) error {
	a.box.Lock()
	sandbox := a.sandbox
	a.box.Unlock()
	if sandbox != nil {
		return sandbox.Remove(ctx, container.RemoveVolumes)
	}
	return a.w.cfg.Provider.Remove(ctx, a.boxName, container.RemoveVolumes)
}
