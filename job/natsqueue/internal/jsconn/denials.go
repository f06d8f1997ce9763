package jsconn

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// maxDenials bounds what is remembered: some subjects hold the id of a job, or a name that is used once.
const maxDenials = 256

// denials remembers the subjects that the server refused. The server reports a refusal in a message of its own; the
// refused request just times out.
type denials struct {
	mu      sync.Mutex
	seen    map[string]*PermissionError
	waiting map[string]map[*context.CancelCauseFunc]struct{}
}

// The server's wording; it gives no other form.
var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// note takes an asynchronous error and returns it as a PermissionError if it is one.
func (d *denials) note(err error) error {
	m := violation.FindStringSubmatch(err.Error())
	if !errors.Is(err, nats.ErrPermissionViolation) || m == nil {
		return err
	}
	denied := &PermissionError{Op: "publish", Subject: m[2]}
	if strings.EqualFold(m[1], "subscription") {
		denied.Op = "subscribe"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil || len(d.seen) >= maxDenials {
		d.seen = map[string]*PermissionError{} // a call that still needs one of them is denied again
	}
	d.seen[denied.Subject] = denied
	for cancel := range d.waiting[denied.Subject] {
		(*cancel)(denied)
	}
	return denied
}

// get returns the denial of subject, nil if there was none.
func (d *denials) get(subject string) *PermissionError {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[subject]
}

// watch returns a context that ends when subject is denied. The caller calls done.
func (d *denials) watch(ctx context.Context, subject string) (watched context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = map[string]map[*context.CancelCauseFunc]struct{}{}
	}
	if d.waiting[subject] == nil {
		d.waiting[subject] = map[*context.CancelCauseFunc]struct{}{}
	}
	d.waiting[subject][&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting[subject], &cancel)
		if len(d.waiting[subject]) == 0 {
			delete(d.waiting, subject)
		}
	}
}
