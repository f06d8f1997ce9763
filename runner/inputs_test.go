package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"slipway/job"
)

func TestInputs(t *testing.T) {
	t.Parallel()
	const stored = "stored content"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(stored)))
	scenario(t, func(b *bundle) {
		b.object("p/inputs/in/x", stored)
		r := b.want(b.do(&job.Job{
			Inputs: []job.Input{
				{Path: "d/e/text", Content: ptr("hi")},
				{Path: "d/bytes", ContentBase64: []byte{0, 255}},
				{Path: "empty", Content: ptr("")},
				{Path: "d/e/stored", Key: "in/x", SHA256: sum, Mode: 0o755},
				{Path: "again", Key: "in/x", SHA256: sum},
			},
			Steps: []job.Step{{Read: "d/e/text"}, {Read: "d/bytes"}, {Read: "d/e/stored"}, {Read: "empty"}, {Read: "again"}},
		}), job.Succeeded, "")
		for i, want := range []string{"hi", "\x00\uFFFD", stored, "", stored} {
			if got := r.Steps[i].Output.Head; got != want {
				t.Errorf("input %d: got %q, want %q", i, got, want)
			}
		}
	})
}

func TestInputs_Bad(t *testing.T) {
	t.Parallel()
	wrong := hex.EncodeToString(make([]byte, 32))
	tests := []struct {
		name string
		in   job.Input
		want string
	}{
		{"no object", job.Input{Path: "f", Key: "none", SHA256: wrong}, "inputs[1] (f): get p/inputs/none"},
		{"wrong digest", job.Input{Path: "f", Key: "x", SHA256: wrong}, "sha256"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.object("p/inputs/x", "abc")
				j := jobOf(run("say never"))
				j.Inputs = []job.Input{{Path: "ok", Content: ptr("ok")}, tt.in}
				r := b.want(b.do(j), job.Errored, job.ReasonInput)
				if !strings.Contains(r.Message, tt.want) {
					t.Errorf("got message %q, want it to contain %q", r.Message, tt.want)
				}
				if len(r.Steps) != 0 {
					t.Errorf("got steps %v, want none", statuses(r))
				}
			})
		})
	}
}
