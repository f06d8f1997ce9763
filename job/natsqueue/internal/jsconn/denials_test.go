package jsconn

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
)

// Some subjects are used once, so what is remembered must not grow with them.
func TestDenialsAreBounded(t *testing.T) {
	t.Parallel()
	var d denials
	var subject string
	for i := range 10_000 {
		subject = fmt.Sprintf("s.%d", i)
		_ = d.note(fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, subject))
	}
	if n := len(d.seen); n > 1000 || d.get(subject) == nil {
		t.Errorf("10000 denied subjects: got %d remembered, the last: %t; want few, and the last", n, d.get(subject) != nil)
	}
}
