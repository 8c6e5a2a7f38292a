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
			for _, name := range regexp.MustCompile("`(tollgate_[a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
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
		series := regexp.MustCompile(`^(tollgate_[a-z_]+?)(_bucket|_count|_sum)?(\{.*\})? `).FindStringSubmatch(line)
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
