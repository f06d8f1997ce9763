package container

import (
	"context"
	"time"
)

// Provider makes boxes. It is safe for concurrent use. Every method may return
// ErrEngineUnavailable, and the cause of a context that ended.
type Provider interface {
	// Prepare makes sure that the image is there, pulling it if the request says
	// so, and tells what its name means now. Calls for the same image and platform share one
	// pull. Errors: ErrImageNotFound, ErrImageAuth, ErrImagePull.
	Prepare(ctx context.Context, req ImageRequest) (Image, error)

	// Create makes a box that is not started yet. It begins with Spec.WithDefaults, and returns its errors (ErrSpec,
	// *Denied): a spec is closed also if no Policy saw it. It is idempotent by Spec.Name: a
	// box of that name that was never started is replaced, a running one is
	// ErrExists. Call Remove on the result whatever happens next. After an error
	// Create has removed what it had made.
	Create(ctx context.Context, spec Spec) (Sandbox, error)

	// Remove destroys the box called name, running or not, with all that was made for it, and waits until nothing of
	// it is left, or ctx ends: a nil error says that nothing is. A box that is not there counts as removed. It needs
	// no handle, so that a reaper can use it. For the holder of the Sandbox the box is then lost (ErrBoxLost), not stopped.
	Remove(ctx context.Context, name string, opts ...RemoveOption) error

	// Get describes the box called name. ErrNotFound if there is none.
	Get(ctx context.Context, name string) (Info, error)

	// List describes every box of this product that carries all the given labels,
	// whichever worker made it, those of which only a part is left (StateRemains) among them.
	List(ctx context.Context, labels map[string]string) ([]Info, error)

	// Check asks the engine whether it could make a box now. Its error says what to do.
	Check(ctx context.Context) error

	// Close releases what the provider itself holds, such as connections. Boxes are not touched. Call it last: no
	// other method may be running or follow.
	Close() error
}

// Sandbox is the handle of one box. It is safe for concurrent use, except that Start comes first.
//
// # Life of a box
//
//  1. Create returns it in StateCreated.
//  2. Start brings it to StateRunning, once. Another Start is ErrStopped.
//  3. It runs commands and file operations, any number at once.
//  4. It ends, and Done is closed, in StateExited: by Stop, by Remove, or without its holder, which is when its
//     process 1 ends, Spec.Lifetime is over, Provider.Remove is called with its name, or its engine dies.
//  5. Remove destroys it. It may come at any time, and is due after every Create.
//
// # Errors of a box that does not run
//
// Exec, and each method of Files, returns
//
//	before Start                                           ErrStopped
//	after Stop or Remove of this Sandbox                   ErrStopped
//	after any other end (4)                                ErrBoxLost
//	after any other end, and then Stop or Remove           ErrStopped or ErrBoxLost
//	if it was running when the box ended                   as above; at a Stop it may have its Exit
//
// So ErrStopped is always the holder's own doing, and ErrBoxLost never is. Where it is certain that what ran in the box
// is to blame, the error matches ErrBoxOOM, ErrBoxEnded or ErrStuck, too.
type Sandbox interface {
	// Start starts the box and returns when its supervisor answers.
	Start(ctx context.Context) error

	// Exec runs a command to its end. Several may run at once. It begins with Spec.CheckCommand, on the spec of Create
	// with its defaults filled in, and returns its error before anything runs: ErrSpec for a command that can't be
	// one, *Denied for a user that the box was not granted. A provider that can't run a command as another user
	// returns ErrUnsupported for that.
	//
	// When ctx ends the command's whole process tree is ended (TERM, Command.Grace, KILL), and Exec returns
	// the Exit with Canceled set and a nil error. Every error says nothing about the
	// command: besides those above ErrBoxLost, ErrStopped, ErrEngineUnavailable.
	//
	// Exec returns only when no process of the command is left.
	Exec(ctx context.Context, cmd Command) (Exit, error)

	// Files gives access to the workspace, as the user of the steps sees it. It never returns nil: before Start
	// and after the end each method of it returns the error above (FailedFiles).
	Files() Files

	// Done is closed when the box has ended, for whatever reason.
	Done() <-chan struct{}

	// Stop ends all commands and the box: TERM, grace, KILL. The box is then only good for Remove. Stopping a box that
	// does not run is no error.
	Stop(ctx context.Context, grace time.Duration) error

	// Remove destroys the box with all that was made for it, and waits until nothing of it is left, or ctx ends. It is
	// safe at any time, also after a failed Start, and more than once.
	Remove(ctx context.Context, opts ...RemoveOption) error

	// Info describes the box as it was made and, once started, as it runs. It does no I/O.
	Info() Info
}

// RemoveOption changes what a Remove removes.
type RemoveOption int

// RemoveVolumes also removes named volumes that were made for the box. Anonymous
// ones are always removed. No provider makes named ones today.
const RemoveVolumes RemoveOption = 1

// ImageRequest asks for an image.
type ImageRequest struct {
	Image    string
	Platform string // os/arch[/variant]; empty means the engine's
	Pull     PullPolicy
	// Progress, if set, is told in a few words what is being waited for.
	Progress func(string)
}

// PullPolicy says when an image is fetched.
type PullPolicy string

// The pull policies. Empty means PullMissing.
const (
	PullAlways  PullPolicy = "always"
	PullMissing PullPolicy = "missing"
	PullNever   PullPolicy = "never"
)

// Image is an image that is present on the engine.
type Image struct {
	// ID is the engine's own, immutable name: what a box is made of.
	ID string
	// Digest is repository@sha256:… if the image came from a registry, else ID.
	Digest string
	// Pulled says that this call, or one that it shared, fetched it.
	Pulled bool
	// Size in bytes.
	Size int64
}

// State is where a box stands.
type State string

// The states of a box.
const (
	StateCreated State = "created"
	StateRunning State = "running"
	StateExited  State = "exited"
	// StateRemains: the box is gone, and something that was made for it is left, such as its workspace. Its name and its
	// labels are the box's; CreatedAt is the time of the last change that is known. Only List and Remove know it.
	StateRemains State = "remains"
)

// Info describes a box.
type Info struct {
	// ID is the engine's own.
	ID        string
	Name      string
	State     State
	Labels    map[string]string
	CreatedAt time.Time
	// Workdir is the absolute path of the workspace, in the box's own terms.
	Workdir string
}

// Carries reports whether the box has all the given labels, with these values.
func (i Info) Carries(labels map[string]string) bool {
	for k, v := range labels {
		if got, ok := i.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}
