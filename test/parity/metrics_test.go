package parity

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every metric that is scraped after one call of each kind is in docs/metrics.md,
// with its labels.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // name to its row
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			for _, name := range regexp.MustCompile("`(tollgate_[a-zA-Z_]+)`").FindAllStringSubmatch(cells[1], -1) {
				rows[name[1]] = cells[2]
			}
		}
	}
	d := openDoor(t, "http", func(*door) {})
	for _, raw := range []string{
		request("GET", "/v2/pods", "key_research", ""),
		request("GET", "/v1/pods", "key_research", ""),
		request("POST", "/v2/pods", "key_research", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA H200"}}`),
		request("GET", "/v2/nope", "key_research", ""),
	} {
		d.ask(t, raw)
	}
	seen := 0
	for line := range strings.Lines(d.page(t, "/metrics")) {
		series := regexp.MustCompile(`^(tollgate_[a-zA-Z_]+?)(_bucket|_count|_sum)?(\{.*\})? `).FindStringSubmatch(line)
		if series == nil {
			continue
		}
		seen++
		labels, documented := rows[series[1]]
		if !documented {
			t.Errorf("%s is not in docs/metrics.md", series[1])
			continue
		}
		for _, label := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(series[3], -1) {
			if label[1] != "le" && !strings.Contains(labels, "`"+label[1]+"`") {
				t.Errorf("%s has a label %s that docs/metrics.md does not", series[1], label[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d series were scraped, want 20 or more", seen)
	}
}

// What organisations and teams spend is measured, with their budgets, once a pass has
// seen it; what keys spend is not.
func TestMoneyIsMeasured(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", budgeted("{per_hour: 1.50, gpus: 8}"))
	d.rented(t, podL4)
	d.reconcile(t)
	page := d.page(t, "/metrics")
	for _, want := range []string{
		`tollgate_spend_burn_USD{org="acme",team=""} 0.43274`,
		`tollgate_spend_burn_USD{org="acme",team="research"} 0.43274`,
		`tollgate_budget_limit{budget="per_hour",org="acme",team="research"} 1.5`,
		`tollgate_budget_used{budget="per_hour",org="acme",team="research"} 0.43274`,
		`tollgate_budget_reserved{budget="per_hour",org="acme",team="research"} 0`,
		`tollgate_budget_limit{budget="gpus",org="acme",team="research"} 8`,
		`tollgate_budget_used{budget="gpus",org="acme",team="research"} 1`,
	} {
		if !strings.Contains(page, "\n"+want+"\n") {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if n := strings.Count(page, "\ntollgate_spend_burn_USD{"); n != 2 {
		t.Errorf("%d series of burn, want those of the organisation and its team", n)
	}
}
