package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rule is an alert rule.
type rule struct {
	Alert, Expr string
	Annotations map[string]string
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(read(t, "deploy/monitoring/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// dashboard is what we look at of a Grafana dashboard.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, LegendFormat string }
	}
}

func panels(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, "deploy/monitoring/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// query is an expression of PromQL, its place, and the use of its labels.
type query struct{ place, expr, labels string }

func queries(t *testing.T) (all []query) {
	t.Helper()
	for _, r := range alerts(t) {
		all = append(all, query{"alert " + r.Alert, r.Expr, strings.Join(slices.Collect(maps.Values(r.Annotations)), "\n")})
	}
	d := panels(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, query{"panel " + p.Title, target.Expr, target.LegendFormat})
		}
	}
	for _, v := range d.Templating.List {
		all = append(all, query{"variable " + v.Name, v.Query, ""})
	}
	return all
}

// unseen are metrics of events that do not happen while tests scrape: their labels are
// those of their page.
func unseen() []string {
	return []string{
		"tollgate_budget_alerts_total", "tollgate_envoy_refusals_total", "tollgate_job_executed_seconds", "tollgate_job_queued_seconds",
		"tollgate_ledger_repairs_total", "tollgate_ledger_restored_late_total", "tollgate_platform_operation_refused", "tollgate_run_usd_total", "tollgate_task_panics_total",
		"tollgate_tokens_total",
	}
}

// documented maps each metric of docs/metrics.md to its labels.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	all, name := make(map[string][]string), regexp.MustCompile("`([a-zA-Z_]+)`")
	for line := range strings.Lines(read(t, "docs/metrics.md")) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`tollgate_") {
			continue
		}
		var labels []string
		for _, m := range name.FindAllStringSubmatch(cells[2], -1) {
			labels = append(labels, m[1])
		}
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			all[m[1]] = labels
		}
	}
	if len(all) < 40 {
		t.Fatalf("docs/metrics.md has %d metrics only", len(all))
	}
	return all
}

// Every metric of a gateway is looked at: by a panel, an alert or a variable.
func TestMetricsAreLookedAt(t *testing.T) {
	t.Parallel()
	var asked strings.Builder
	for _, q := range queries(t) {
		asked.WriteString(q.expr + "\n")
	}
	for name := range documented(t) {
		if !strings.Contains(asked.String(), name) {
			t.Errorf("nothing asks for %s", name)
		}
	}
}

// The metrics that a gateway has under calls of all kinds have every name and label
// that alerts and dashboard ask for.
func TestMetricsAskedForExist(t *testing.T) {
	t.Parallel()
	scraped := scrape(t)
	for name, labels := range documented(t) {
		if slices.Contains(unseen(), name) {
			if _, ok := scraped[name]; ok {
				t.Errorf("%s is scraped, and need not be excused", name)
			}
			scraped[name], scraped[name+"_bucket"] = labels, labels
		}
	}
	// By the prefixes of our metrics and of those of Go and the process.
	selector := regexp.MustCompile(`\b((?:tollgate|go|process)_[a-zA-Z0-9_]+)(?:\{([^}]*)\})?`)
	matcher := regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping := regexp.MustCompile(`(?:by|on|label_values)\s*\(([^)]*)\)`)
	used := regexp.MustCompile(`(?:\$labels\.|\{\{)([a-z_]+)`)
	targets := []string{"job", "instance", "le"} // what Prometheus adds, and the bounds of histograms
	for _, q := range queries(t) {
		known := slices.Clone(targets)
		for _, m := range selector.FindAllStringSubmatch(q.expr, -1) {
			labels, ok := scraped[m[1]]
			if !ok {
				t.Errorf("%s asks for %s, which a gateway does not have", q.place, m[1])
				continue
			}
			known = append(known, labels...)
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(labels, l[1]) && !slices.Contains(targets, l[1]) {
					t.Errorf("%s asks for label %s of %s, which has %v", q.place, l[1], m[1], labels)
				}
			}
		}
		var named []string
		for _, m := range grouping.FindAllStringSubmatch(q.expr, -1) {
			for name := range strings.SplitSeq(m[1], ",") {
				if name = strings.TrimSpace(name); !selector.MatchString(name) {
					named = append(named, name)
				}
			}
		}
		for _, m := range used.FindAllStringSubmatch(q.labels, -1) {
			named = append(named, m[1])
		}
		for _, name := range named {
			if !slices.Contains(known, name) && name != "with" && name != "end" {
				t.Errorf("%s names label %q, which none of its metrics has: %v", q.place, name, known)
			}
		}
	}
}

func TestRulesAreValid(t *testing.T) {
	t.Parallel()
	runTool(t, "promtool", "check", "rules", "deploy/monitoring/alerts.yaml")
	runTool(t, "promtool", "test", "rules", "deploy/monitoring/alerts_test.yaml")
}

// The dashboard's queries are read by promtool as rules that record.
func TestDashboardIsValid(t *testing.T) {
	t.Parallel()
	type recorded struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []recorded
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", "tollgate", "$instance", ".*")
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range panels(t).Panels {
		if ids[p.ID] {
			t.Errorf("panel %q has the id %d of another", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies on %q, or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %q of type %s has %d queries", p.Title, p.Type, len(p.Targets))
		}
		for _, target := range p.Targets {
			rules = append(rules, recorded{"test:query", variables.Replace(target.Expr)})
		}
	}
	file := map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	runTool(t, "promtool", "check", "rules", "--lint=none", path)
}

// Each alert has a section in the runbooks, and each section an alert.
func TestAlertsHaveRunbooks(t *testing.T) {
	t.Parallel()
	var sections, names []string
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(read(t, "docs/runbooks.md"), -1) {
		sections = append(sections, m[1])
	}
	for _, r := range alerts(t) {
		names = append(names, r.Alert)
		if want := "https://github.com/tollgate-dev/tollgate/blob/main/docs/runbooks.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s has the runbook %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", r.Alert)
		}
	}
	if !slices.Equal(sections, names) {
		t.Errorf("the runbooks are about %q, the alerts are %q", sections, names)
	}
}
