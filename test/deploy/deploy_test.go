package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"slipway/job"
	"slipway/metrics"
	"slipway/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ runner.Observer = (*metrics.Recorder)(nil)

const (
	rulesFile     = "../../deploy/prometheus/slipway.rules.yml"
	rulesTestFile = "../../deploy/prometheus/slipway.rules.test.yml"
	dashboardFile = "../../deploy/grafana/slipway.json"
)

// targetLabels are added by Prometheus to every series that it scrapes.
var targetLabels = []string{"job", "instance"}

// check reports what of expr is not in the scrape.
func (o labelsOf) check(expr string) []string {
	selectors, grouped, err := uses(expr)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	known := slices.Clone(targetLabels)
	for _, u := range selectors {
		if u.metric == "up" { // Prometheus' own
			continue
		}
		labels, ok := o[u.metric]
		if !ok {
			problems = append(problems, "no metric "+u.metric)
			continue
		}
		known = slices.AppendSeq(known, maps.Keys(labels))
		for _, m := range u.matchers {
			problems = append(problems, checkMatcher(u.metric, m, labels)...)
		}
	}
	for _, g := range grouped {
		if !slices.Contains(known, g) {
			problems = append(problems, "grouped by "+g+", which no metric of the expression has")
		}
	}
	return problems
}

// checkMatcher reports a label that the metric lacks, and a value that it never takes.
func checkMatcher(metric string, m matcher, labels map[string]map[string]bool) []string {
	if slices.Contains(targetLabels, m.label) {
		return nil
	}
	values, ok := labels[m.label]
	if !ok {
		return []string{fmt.Sprintf("%s has no label %s", metric, m.label)}
	}
	var problems []string
	for v := range strings.SplitSeq(m.value, "|") {
		if !values[v] && !strings.HasPrefix(v, "$") {
			problems = append(problems, fmt.Sprintf("%s{%s} never is %q", metric, m.label, v))
		}
	}
	return problems
}

// dashboardExprs returns every query of the dashboard, by its panel or variable.
func dashboardExprs(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			ID                       int
			Title, Description, Type string
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	out := map[string]string{}
	ids := map[int]bool{}
	cells := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %d %q: its id is taken, or it lacks a title, a description or a query", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if old, ok := cells[[2]int{x, y}]; ok {
					t.Fatalf("panels %q and %q overlap", old, p.Title)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		for i, target := range p.Targets {
			out[fmt.Sprintf("panel %q, query %d", p.Title, i)] = target.Expr
		}
	}
	labelValues := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, v := range d.Templating.List {
		if v.Definition == "" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil {
			t.Errorf("variable %s: %s: not understood", v.Name, v.Definition)
			continue
		}
		out["variable "+v.Name] = "count by (" + m[2] + ") (" + m[1] + ")"
	}
	return out
}

func TestEveryNameIsInAScrape(t *testing.T) {
	got := scrape(t)
	exprs := dashboardExprs(t)
	for _, g := range loadRules(t).Groups {
		for _, r := range g.Rules {
			exprs["alert "+r.Alert] = r.Expr
		}
	}
	if len(exprs) < 50 {
		t.Errorf("%d expressions found, want at least 50: are the files read rightly?", len(exprs))
	}
	for where, expr := range exprs {
		for _, p := range got.check(expr) {
			t.Errorf("%s: %s\n\t%s", where, p, expr)
		}
	}
}

// TestEveryMetricIsShown is the other direction: what is measured can be seen.
func TestEveryMetricIsShown(t *testing.T) {
	shown := map[string]bool{}
	for _, expr := range dashboardExprs(t) {
		selectors, _, err := uses(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range selectors {
			shown[strings.TrimSuffix(u.metric, "_bucket")] = true
		}
	}
	for name := range scrape(t) {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(base, "slipway_") && !shown[base] {
			t.Errorf("%s is on no panel", base)
		}
	}
}

// TestALabelHasOneMeaning: the values of a label come from one list, whatever the metric. Class once was a priority in
// slipway_queue_* and the payer of a retry elsewhere, so that no panel could join the two.
func TestALabelHasOneMeaning(t *testing.T) {
	lists := map[string][]string{
		"priority": words(job.Priorities()...),
		"class":    words(job.ClassJob, job.ClassInfra, job.ClassCrash, job.ClassShutdown),
		"outcome":  words(job.Outcomes()...),
		"reason":   append(words(job.Reasons()...), "none"),
	}
	got := scrape(t)
	seen := map[string]bool{}
	for metric, labels := range got {
		for label, values := range labels {
			list, closed := lists[label]
			if !closed || !strings.HasPrefix(metric, "slipway_") {
				continue
			}
			seen[label] = true
			for v := range values {
				if !slices.Contains(list, v) {
					t.Errorf("%s{%s=%q}: want one of %q", metric, label, v, list)
				}
			}
		}
	}
	if len(seen) != len(lists) {
		t.Errorf("the scrape has the labels %v, want each of %v", seen, lists)
	}
}

func words[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// TestCheckFindsMistakes proves that the tests above can fail.
func TestCheckFindsMistakes(t *testing.T) {
	got := scrape(t)
	for expr, want := range map[string]string{
		`slipway_job_total`:                               "no metric slipway_job_total",
		`rate(slipway_phase_duration_seconds[5m])`:        "no metric slipway_phase_duration_seconds",
		`slipway_jobs_total{result="failed"}`:             "has no label result",
		`slipway_jobs_total{outcome="finished"}`:          `never is "finished"`,
		`slipway_jobs_total{reason=~"oom|out_of_memory"}`: `never is "out_of_memory"`,
		`sum by (queue) (slipway_jobs_total)`:             "grouped by queue",
		`slipway_jobs_total{outcome=`:                     "is no matcher",
	} {
		if problems := strings.Join(got.check(expr), "; "); !strings.Contains(problems, want) {
			t.Errorf("%s: %q, want %q", expr, problems, want)
		}
	}
}
