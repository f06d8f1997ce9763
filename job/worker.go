package job

import (
	"fmt"
	"regexp"
)

var workerName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckWorker checks the name of a worker. Its error says which form is wanted.
func CheckWorker(name string) error {
	if !workerName.MatchString(name) {
		return fmt.Errorf("want %s, since it is part of labels and subjects, not %.100q", workerName, name)
	}
	return nil
}
