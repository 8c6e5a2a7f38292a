package money

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// idsOf lists budgets.
func idsOf(list []BudgetRow) string {
	var out []string
	for i := range list {
		out = append(out, list[i].id())
	}
	return strings.Join(out, ", ")
}

func someBudgets() []BudgetRow {
	b := func(kind, id, team, name, limit, used, left, usedUp string) BudgetRow {
		r := BudgetRow{Kind: kind, ID: id, Team: team, Scope: strings.TrimSpace(kind + " " + id), Budget: Budget{Name: name, Limit: limit, Used: used, Reserved: "0", Left: left, UsedUp: usedUp}}
		r.Percent = r.ForScope("", "").Percent
		return r
	}
	return []BudgetRow{
		b("organisation", "", "", "per_month", "1000", "100", "900", "2026-11-29"),
		b("team", "ops", "ops", "per_hour", "10", "9", "1", ""),
		b("team", "research", "research", "per_month", "100", "100", "0", ""),
		b("team", "research", "research", "gpus", "8", "1", "7", ""),
		b("key", "ann", "research", "per_day", "10", "1", "9", "2026-11-24"),
	}
}

func TestBudgetsAreSorted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		p    listedBudgets
		want string
	}{
		{listedBudgets{Sort: "exhaustion"}, "team research per_month, key ann per_day, organisation per_month, team ops per_hour, team research gpus"},
		{listedBudgets{Sort: "percent"}, "team research per_month, team ops per_hour, team research gpus, key ann per_day, organisation per_month"},
		{listedBudgets{Sort: "scope"}, "organisation per_month, team ops per_hour, team research per_month, team research gpus, key ann per_day"},
		{listedBudgets{Sort: "scope", Team: "research"}, "team research per_month, team research gpus, key ann per_day"},
		{listedBudgets{Sort: "scope", Key: "ann"}, "key ann per_day"},
		{listedBudgets{Sort: "scope", Search: "RES"}, "team research per_month, team research gpus"},
		{listedBudgets{Sort: "scope", AtRisk: true}, "organisation per_month, team ops per_hour, team research per_month, key ann per_day"},
	} {
		list := tt.p.choose(someBudgets())
		if got := idsOf(list); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.p, got, tt.want)
		}
	}
}

func TestCostsAreCompared(t *testing.T) {
	t.Parallel()
	list := compared(
		[]Cost{{CostGroup: CostGroup{Team: "a"}, USD: "3"}, {CostGroup: CostGroup{Team: "b"}, USD: "1"}},
		[]Cost{{CostGroup: CostGroup{Team: "a"}, USD: "2"}, {CostGroup: CostGroup{Team: "c"}, USD: "5.5"}},
	)
	got := make(map[string]string)
	for _, c := range list {
		got[c.Team] = strings.Join([]string{c.USD, c.Previous, c.Difference}, " ")
	}
	if want := map[string]string{"a": "3 2 1", "b": "1 0 1", "c": "0 5.5 -5.5"}; got["a"] != want["a"] || got["b"] != want["b"] || got["c"] != want["c"] {
		t.Errorf("compared: %v, want %v", got, want)
	}
	moved := compared([]Cost{{CostGroup: CostGroup{Resource: "p", Name: "new", GPU: "L4"}, USD: "1"}},
		[]Cost{{CostGroup: CostGroup{Resource: "p", Name: "old"}, USD: "1"}})
	if len(moved) != 1 || moved[0].Name != "new" || moved[0].Percent != 100 {
		t.Errorf("a renamed resource: %+v, want one row", moved)
	}
}

// The last group of a page may rise to the top: the next page still begins after its former position.
func TestComparedPages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ sort, want string }{
		{"usd", "ab, cd"}, {"group", "ab, cd"}, {"previous", "cb, da"}, {"difference", "ad, bc"},
	} {
		list, p := compared(
			[]Cost{{CostGroup: CostGroup{Team: "a"}, USD: "9"}, {CostGroup: CostGroup{Team: "b"}, USD: "7"}, {CostGroup: CostGroup{Team: "c"}, USD: "5"}, {CostGroup: CostGroup{Team: "d"}, USD: "3"}},
			[]Cost{{CostGroup: CostGroup{Team: "b"}, USD: "6"}, {CostGroup: CostGroup{Team: "c"}, USD: "8"}, {CostGroup: CostGroup{Team: "d"}, USD: "1"}},
		), comparing{Paging: adminapi.Paging{Limit: 2}, Sort: tt.sort}
		var pages []string
		for range 2 {
			part, next, err := adminapi.SortedPage(list, &p.Paging, p.rank)
			if err != nil || len(part) != 2 {
				t.Fatalf("by %s: %+v, %v", tt.sort, part, err)
			}
			pages, p.Cursor = append(pages, part[0].Team+part[1].Team), next
			for i := range list {
				if g := &list[i]; g.Team == part[1].Team {
					g.micro, g.previous = 90e6, 40e6
				}
			}
		}
		if got := strings.Join(pages, ", "); got != tt.want || p.Cursor != "" {
			t.Errorf("by %s: %s, want %s", tt.sort, got, tt.want)
		}
	}
}

// The previous period of a range that has not ended reaches as far into itself.
func TestPreviousPeriod(t *testing.T) {
	t.Parallel()
	day := func(n, hour int) time.Time { return time.Date(2026, 11, n, hour, 0, 0, 0, time.UTC) }
	now := day(29, 15).Add(30 * time.Minute)
	for _, tt := range []struct{ from, to, wantFrom, wantTo time.Time }{
		{day(29, 0), day(30, 0), day(28, 0), day(28, 16)},
		{day(23, 0), day(30, 0), day(16, 0), day(22, 16)},
		{day(10, 0), day(20, 0), day(0, 0), day(10, 0)},
		{day(20, 0), day(29, 16), day(10, 0), day(19, 16)},
		{day(29, 10), day(29, 16), day(29, 4), day(29, 10)},
		{day(28, 15), day(29, 16), day(27, 14), day(28, 15)}, // 24 hours, rounded outwards
		{day(27, 15), day(29, 15), day(25, 15), day(27, 15)},
	} {
		got := before(&ledger.Query{From: tt.from, To: tt.to}, now)
		if !got.From.Equal(tt.wantFrom) || !got.To.Equal(tt.wantTo) {
			t.Errorf("%s to %s: %s to %s, want %s to %s", tt.from, tt.to, got.From, got.To, tt.wantFrom, tt.wantTo)
		}
	}
}
