package panics

import (
	"errors"
	"testing"
)

func TestCatch(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	if err := Catch(func() error { return odd }); !errors.Is(err, odd) {
		t.Errorf("got %v, want the error", err)
	}
	if err := Catch(func() error { return nil }); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	err := Catch(func() error { panic("broken") })
	if p, ok := errors.AsType[*Error](err); !ok || p.Value != "broken" {
		t.Errorf("got %v, want the panic", err)
	}
}
