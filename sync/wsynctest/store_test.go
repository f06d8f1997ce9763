package wsynctest

import (
	"testing"

	"go.uber.org/goleak"

	wsync "slipway/sync"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	Run(t, func(*testing.T) wsync.Store { return NewStore() })
}
