package loop

import (
	"testing"

	"slipway/job"
)

func TestScript(t *testing.T) {
	t.Parallel()
	steps := []job.Step{{Name: "s", If: job.IfSuccess}, {Name: "f", If: job.IfFailure}, {Name: "a", If: job.IfAlways}}
	tests := []struct {
		name string
		turn Turn
		want string // the steps that are not skipped
	}{
		{"all is well", Turn{}, "sa"},
		{"after a failure", Turn{Failed: true}, "fa"},
		{"ending", Turn{Ending: true}, "a"},
		{"ending after a failure", Turn{Failed: true, Ending: true}, "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := Script(steps)
			got := ""
			for i := range steps {
				decision, err := d.Next(t.Context(), tt.turn)
				if err != nil || len(decision.Actions) != 1 || decision.Finish || decision.Invalid != "" {
					t.Fatalf("step %d: got %+v, %v; want one action", i, decision, err)
				}
				if a := decision.Actions[0]; !a.Skip {
					got += a.Step.Name
				}
			}
			if got != tt.want {
				t.Errorf("got steps %q, want %q", got, tt.want)
			}
			for range 2 {
				if decision, err := d.Next(t.Context(), tt.turn); err != nil || !decision.Finish {
					t.Errorf("at the end: got %+v, %v; want it to finish", decision, err)
				}
			}
		})
	}
}

// TestScript_Rest: the loop knows by it what to report as skipped.
func TestScript_Rest(t *testing.T) {
	t.Parallel()
	d := &script{steps: []job.Step{{Name: "a"}, {Name: "b"}}}
	for want := 2; want >= 0; want-- {
		if got := len(d.Rest()); got != want {
			t.Errorf("got %d steps left, want %d", got, want)
		}
		if _, err := d.Next(t.Context(), Turn{}); err != nil {
			t.Fatal(err)
		}
	}
}
