package verdict

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"slipway/container"
	"slipway/job"
)

func TestLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cause error
		want  bool
	}{
		{nil, false},
		{job.ErrLeaseLost, true},
		{fmt.Errorf("extend: %w", job.ErrLeaseLost), true},
		{ErrSelfFenced, true},
		{ErrSoftStop, false},
		{ErrKilled, false},
		{ErrAborted, false},
	} {
		if got := Lost(tt.cause); got != tt.want {
			t.Errorf("%v: got %t, want %t", tt.cause, got, tt.want)
		}
	}
}

func TestOfFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		reason job.Reason
		own    bool
	}{
		{container.ErrNoSpace, job.ReasonDisk, true},
		{container.ErrNotFound, job.ReasonExit, true},
		{container.ErrNotRegular, job.ReasonExit, true},
		{container.ErrPath, job.ReasonExit, true},
		{container.ErrPermission, job.ReasonExit, true},
		{container.ErrTooLarge, job.ReasonExit, true},
		{container.ErrExists, job.ReasonExit, true},
		{container.ErrBoxLost, "", false},
		{container.ErrEngineUnavailable, "", false},
		{errors.New("odd"), "", false},
	} {
		if reason, own := OfFile(fmt.Errorf("write f: %w", tt.err)); reason != tt.reason || own != tt.own {
			t.Errorf("%v: got %q, %t; want %q, %t", tt.err, reason, own, tt.reason, tt.own)
		}
	}
}

func TestHintDisk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err     error
		limited bool
		want    bool
	}{
		{container.ErrNoSpace, true, true},
		{container.ErrNoSpace, false, false}, // the host's disk: no setting of the job helps
		{container.ErrPath, true, false},
	} {
		if got := strings.Contains(HintDisk("m", tt.err, tt.limited), MoreDisk); got != tt.want {
			t.Errorf("%v, limited %t: got a hint: %t, want %t", tt.err, tt.limited, got, tt.want)
		}
	}
}
