package job

import (
	"fmt"
	"regexp"
)

var workerName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckWorker tells whether a worker can be called name. Its error says what is wanted.
func CheckWorker(name string) error {
	if !workerName.MatchString(name) {
		return fmt.Errorf("want %s, since it is part of labels and subjects, not %.100q", workerName, name)
	}
	return nil
}
