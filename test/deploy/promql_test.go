package deploy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUses(t *testing.T) {
	tests := []struct {
		expr    string
		want    []use
		grouped []string
	}{
		{`up`, []use{{metric: "up"}}, nil},
		{`up{job="a b"} == 0`, []use{{"up", []matcher{{"job", "=", "a b"}}}}, nil},
		{
			`sum by (le, phase) (rate(x_bucket{a=~"$a",b!="}"}[$__rate_interval]))`,
			[]use{{"x_bucket", []matcher{{"a", "=~", "$a"}, {"b", "!=", "}"}}}},
			[]string{"le", "phase"},
		},
		{`sum(rate(x[5m])) by (q) / on (q) group_left (r) y offset 5m > bool 1e3`, []use{{metric: "x"}, {metric: "y"}}, []string{"q", "q", "r"}},
		{`histogram_quantile(0.95, x{a='it\'s',}) and y unless z or vector(0)`, []use{{"x", []matcher{{"a", "=", `it\'s`}}}, {metric: "y"}, {metric: "z"}}, nil},
		{`max_over_time(x[1h:5m] offset -1w) + inf`, []use{{metric: "x"}}, nil},
		{`a / scalar(b) * 60`, []use{{metric: "a"}, {metric: "b"}}, nil},
	}
	for _, tt := range tests {
		got, grouped, err := uses(tt.expr)
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(use{}, matcher{})); d != "" {
			t.Errorf("%s: -want +got\n%s", tt.expr, d)
		}
		if d := cmp.Diff(tt.grouped, grouped); d != "" {
			t.Errorf("%s: labels -want +got\n%s", tt.expr, d)
		}
	}
}

func TestUsesRefuses(t *testing.T) {
	for _, expr := range []string{`{a="b"}`, `x{a="b`, `x{a="b"`, `x{a}`, `x{a=b}`, `x[5m`, `sum by (a`, `sum by (a + b) (x)`} {
		if got, _, err := uses(expr); err == nil {
			t.Errorf("%s: %v, want an error", expr, got)
		}
	}
}

func FuzzUses(f *testing.F) {
	f.Add(`sum by (le) (rate(x_bucket{a=~"$a"}[5m])) / 2`)
	f.Add(`x{a="\"`)
	f.Fuzz(func(t *testing.T, expr string) {
		selectors, _, err := uses(expr)
		if err != nil && selectors != nil {
			t.Errorf("%q: selectors and an error", expr)
		}
	})
}
