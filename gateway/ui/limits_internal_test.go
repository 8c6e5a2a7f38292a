package ui

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// Scopes with throttled requests come first and stay in use after their window has ended. Their counts lead to the requests.
func TestThrottledLimits(t *testing.T) {
	t.Parallel()
	d := newLimitData(hostileVisit("limits"), &operator.LimitList{Since: time.Date(2026, 11, 19, 12, 5, 0, 0, time.UTC), Windows: []operator.Window{
		{Scope: "key:ann", Window: "minute", Limit: 10, Used: 9, Remaining: 1},
		{Scope: "key:bob", Window: "minute", Limit: 10, Remaining: 10},
		{Scope: "key:tiny", Window: "hour", Limit: 100, Used: 5, Remaining: 95},
		{Scope: "key:tiny", Window: "minute", Limit: 5, Remaining: 5, Throttled: 1234},
		{Scope: "class:runs/team/ml", Window: "day", Throttled: 2},
	}})
	var rows [][]string
	for _, r := range d.Table.Rows {
		group := ""
		if r.Group != nil {
			group = r.Group.Text + ", " + strconv.Itoa(len(r.Group.Forms))
		}
		rows = append(rows, []string{group, r.Cells[0].Text, r.Cells[1].Status.Word, r.Cells[2].Text, r.Cells[5].Text})
	}
	want := [][]string{
		{"tiny, 1", "Minute", "Throttled before", "1,234", "5"},
		{"", "Hour", "OK", "0", "100"},
		{"runs/team/ml, 0", "Day", "Throttled before", "2", ""},
		{"ann, 1", "Minute", "Near limit", "0", "10"},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for i, part := range map[int]string{0: "key=tiny", 2: "team=ml"} {
		path := d.Table.Rows[i].Cells[2].Path
		for _, want := range []string{part, "outcome=throttled", "from=2026-11-19T12%3A05%3A00Z"} {
			if !strings.Contains(path, want) {
				t.Errorf("the count leads to %s, without %s", path, want)
			}
		}
	}
	if tabs := d.Tabs; tabs[0].Count != "4" {
		t.Errorf("%s windows in use, want 4", tabs[0].Count)
	}
}
