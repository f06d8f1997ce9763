package workspace

import (
	"context"
	"testing"

	"slipway/container"
	"slipway/container/local"
	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

// TestBoxTree_Local: the tree of a box behind the real supervisor keeps the
// contract that the local folder's keeps.
func TestBoxTree_Local(t *testing.T) {
	wsynctest.RunTree(t, func(t *testing.T) wsync.Tree {
		t.Helper()
		p, err := local.New(local.Config{AllowLocal: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		box, err := p.Create(t.Context(), container.Spec{Name: "slipway-test-tree"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := box.Remove(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("remove: %v", err)
			}
		})
		if err := box.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		return boxTree{box.Files()}
	})
}
