package container

import "errors"

// Errors of every provider. They are matched with errors.Is.
var (
	// ErrNotFound: no such box, or no such file.
	ErrNotFound = errors.New("not found")
	// ErrExists: a running box of that name, or a file where none must be.
	ErrExists = errors.New("exists")
	// ErrStopped: the holder of the Sandbox has stopped or removed the box, or not started it.
	ErrStopped = errors.New("box is stopped")
	// ErrBoxLost: the box ended although its holder did not ask for it, or no longer answers. See Sandbox.
	ErrBoxLost = errors.New("box lost")
	// ErrBoxOOM comes with ErrBoxLost: what ran in the box exhausted its memory, and the kernel killed the box's process 1.
	ErrBoxOOM = errors.New("the box's memory was exhausted: the kernel killed its supervisor")
	// ErrBoxEnded comes with ErrBoxLost: a command that ran as root ended the box's process 1.
	ErrBoxEnded = errors.New("a command that ran as root ended the box")
	// ErrStuck comes with ErrBoxLost: the box lives, but could not end a command that was to end. It is then destroyed.
	ErrStuck = errors.New("a command could not be ended")
	// ErrEngineUnavailable: the engine does not answer.
	ErrEngineUnavailable = errors.New("container engine unavailable")
	// ErrEngineFull comes with ErrEngineUnavailable: the engine answers, and its disk has too little room to begin a box.
	ErrEngineFull = errors.New("its disk is full")
	// ErrUnsupported: this provider, or this engine, can't do that.
	ErrUnsupported = errors.New("unsupported")
	// ErrImageNotFound: no such image, here or in its registry.
	ErrImageNotFound = errors.New("image not found")
	// ErrImageAuth: the registry refused the credentials, or wants some.
	ErrImageAuth = errors.New("image access denied")
	// ErrImagePull: the pull failed for another reason, or stalled.
	ErrImagePull = errors.New("image pull failed")
	// ErrSpec: the spec breaks a rule of this package.
	ErrSpec = errors.New("invalid box spec")
	// ErrDenied: the worker's policy does not allow what was asked for. See Denied.
	ErrDenied = errors.New("denied by policy")
	// ErrNotRegular: the path names something that is no regular file (a folder, a link, a device, …).
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge: a file, or a folder's list, is larger than the caller accepts.
	ErrTooLarge = errors.New("file too large")
	// ErrPath: the path is not local to the workspace, or passes through a symbolic link.
	ErrPath = errors.New("path leaves the workspace")
	// ErrPermission: the steps' user may not do that.
	ErrPermission = errors.New("permission denied")
	// ErrNoSpace: the workspace is full.
	ErrNoSpace = errors.New("no space left in the workspace")
)

// FileError is an error of Files that is about one path. errors.Is finds in it which of the errors above it is.
type FileError struct {
	// Path is relative to the workspace, as it was given to Files.
	Path string
	Err  error
}

// Error names the path.
func (e *FileError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the error without the path.
func (e *FileError) Unwrap() error { return e.Err }

// SpecError is a rule of this package that a spec or a command breaks. It matches ErrSpec.
type SpecError struct{ Field, Detail string }

// Error names the field.
func (e *SpecError) Error() string { return ErrSpec.Error() + ": " + e.Field + ": " + e.Detail }

// Is makes e match ErrSpec.
func (e *SpecError) Is(target error) bool { return target == ErrSpec }
