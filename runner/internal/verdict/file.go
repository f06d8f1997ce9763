package verdict

import (
	"errors"

	"slipway/container"
	"slipway/job"
)

// fileErrors are the errors of container.Files that are the job's own doing.
var fileErrors = []error{
	container.ErrNotFound, container.ErrNotRegular, container.ErrPath, container.ErrPermission,
	container.ErrTooLarge, container.ErrExists,
}

// OfFile says for which reason an error of container.Files is the job's own doing. own is false for an error of the
// machinery, which says nothing about the job.
func OfFile(err error) (reason job.Reason, own bool) {
	if errors.Is(err, container.ErrNoSpace) {
		return job.ReasonDisk, true
	}
	for _, e := range fileErrors {
		if errors.Is(err, e) {
			return job.ReasonExit, true
		}
	}
	return "", false
}

// MoreDisk is what to do about a workspace that is full.
const MoreDisk = "ask for more with resources.disk"

// HintDisk adds MoreDisk to the message of err, if it is that a workspace with a limit is full.
func HintDisk(message string, err error, limited bool) string {
	if limited && errors.Is(err, container.ErrNoSpace) {
		return message + "; " + MoreDisk
	}
	return message
}
