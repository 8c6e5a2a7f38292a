package spend

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// teams have a key each, which is called as they are.
var teams = []string{"research", "ops", "ml", "audio", "bio", "data", "games", "maps", "nlp", "search", "sim", "vision"} //nolint:gochecknoglobals // read only

// teamsConfig gives each team a key.
func teamsConfig() string {
	var ids, keys strings.Builder
	for _, team := range teams {
		fmt.Fprintf(&ids, "{id: %s}, ", team)
		fmt.Fprintf(&keys, "      - {id: %s, team: %s, sha256: SHA256(%s), roles: [admin], exempt: true}\n", team, team, keyOf(team))
	}
	return "    budget: {per_month: 100000}\n    teams: [" + ids.String() + "]\n    keys:\n" + keys.String()
}

func keyOf(team string) string { return "key_" + team + "_month" }

// month is the life of one month.
type month struct {
	*site

	*rand.Rand
	redis *miniredis.Miniredis
	clock *platform.Clock
	// owner is the team of every resource there ever was.
	owner map[string]string
	live  []thing
	done  map[string]int
	// forecasts were made at some time of each day.
	forecasts []money.Forecasts
}

// thing is a resource that exists.
type thing struct {
	kind, id string // kind is the path of its collection
	size     int    // of a volume
}

// TestAMonthAgreesWithTheBill lets teams live for a month at random, and wants the ledger's
// accruals for each of them to be the platform's bill, to the cent.
func TestAMonthAgreesWithTheBill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a month, one call after the other, takes long")
	}
	const seeds = 3
	var came [seeds]outcomes
	t.Cleanup(func() { // after all of them
		var all outcomes
		for _, o := range came {
			all.days, all.months = append(all.days, o.days...), append(all.months, o.months...)
		}
		// Forecasts of one month stand or fall together, and three months are few.
		days, months := mean(all.days), mean(all.months)
		t.Logf("within the range, meant for 80%%: %.0f%% of days, %.0f%% of months", 100*days, 100*months)
		if !t.Failed() && (days < 0.7 || months < 0.6) {
			t.Errorf("%.3f of days and %.3f of months are within ranges meant for 0.8", days, months)
		}
	})
	for seed := range came {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			came[seed] = live(t, uint64(seed))
		})
	}
}

// outcomes has a 1 for each forecast that what came was in the range of, otherwise 0.
type outcomes struct{ days, months []float64 }

// live is one month, held against its bill, and what came of its forecasts.
func live(t *testing.T, seed uint64) outcomes {
	t.Helper()
	m := newMonth(t, seed, "")
	end := time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)
	for next := m.clock.Now(); ; {
		next = next.Add(time.Duration(m.Int64N(int64(4 * time.Hour))))
		if !next.Before(end.Add(-time.Second)) {
			break
		}
		m.at(next)
		m.step()
		if m.IntN(16) == 0 { // what an hour cost is counted at any time, and what has changed since, too
			m.reconcile(m.IntN(2))
		}
		if n := len(m.forecasts); next.Hour() >= 12 && (n == 0 || m.forecasts[n-1].At.Day() != next.Day()) {
			m.forecasts = append(m.forecasts, get[money.Forecasts](m.site, "/admin/spend/forecast?org=acme"))
		}
	}
	m.at(end.Add(-time.Millisecond))
	for _, what := range []string{"create pod", "create volume", "stop", "start", "patch", "grow", "delete"} {
		if m.done[what] == 0 {
			t.Errorf("in the whole month there was no %s: %v", what, m.done)
		}
	}
	m.compare(m.billed())
	return m.foreseen()
}

func newMonth(t *testing.T, seed uint64, config string) *month {
	t.Helper()
	clock := platform.ManualClock(time.Date(2027, 3, 1, 0, 0, 1, 0, time.UTC))
	m := &month{
		Rand: rand.New(rand.NewPCG(seed, 7)), clock: clock, redis: miniredis.RunT(t),
		owner: make(map[string]string), done: make(map[string]int),
	}
	m.redis.SetTime(clock.Now())
	m.site = open(t, &plan{gateways: 2, config: config + teamsConfig(), redis: m.redis.Addr(), clock: clock})
	m.reconcile(0)
	return m
}

// at moves all clocks.
func (m *month) at(now time.Time) {
	m.clock.AdvanceTo(now)
	m.redis.SetTime(now)
}

// step is one thing that one team does.
func (m *month) step() {
	m.t.Helper()
	if len(m.live) < 4 || len(m.live) < 24 && m.IntN(3) == 0 {
		m.create(teams[m.IntN(len(teams))])
		return
	}
	i := m.IntN(len(m.live))
	one := &m.live[i]
	path := one.kind + "/" + one.id
	team := m.owner[one.id]
	switch n := m.IntN(10); {
	case n < 3:
		if m.does("delete", team, http.MethodDelete, path, "") {
			m.live = append(m.live[:i], m.live[i+1:]...)
		}
	case one.kind == volumes:
		if size := one.size + 1 + m.IntN(300); m.does("grow", team, http.MethodPatch, path, fmt.Sprintf(`{"size":%d}`, size)) {
			one.size = size
		}
	case n < 6:
		m.does("stop", team, http.MethodPost, path+"/action", `{"action":"stop"}`)
	case n < 9:
		m.does("start", team, http.MethodPost, path+"/action", `{"action":"start"}`)
	default:
		m.does("patch", team, http.MethodPatch, path, fmt.Sprintf(`{"disk":%d}`, 20+m.IntN(100)))
	}
}

const (
	pods    = "/v2/pods"
	volumes = "/v2/network-volumes"
)

func (m *month) create(team string) {
	if m.IntN(5) == 0 {
		size := 10 + m.IntN(1500)
		body := fmt.Sprintf(`{"name":"v","size":%d,"dataCenter":"EU-RO-1"}`, size)
		if id := m.made("create volume", team, volumes, body); id != "" {
			m.live = append(m.live, thing{volumes, id, size})
		}
		return
	}
	machine := []string{
		`"gpu":{"id":"NVIDIA L4"}`, `"gpu":{"id":"NVIDIA L4","count":2}`, `"gpu":{"id":"NVIDIA GeForce RTX 4090"}`,
		`"gpu":{"id":"NVIDIA RTX A5000"}`, `"cpu":{"id":"cpu3c","vcpuCount":4}`,
	}[m.IntN(5)]
	mounts := ""
	if m.IntN(2) == 0 && machine[1] == 'g' {
		mounts = fmt.Sprintf(`,"mounts":{"persistent":{"size":%d,"path":"/workspace"}}`, 10+m.IntN(200))
	}
	body := fmt.Sprintf(`{"name":"p","image":"img:1","disk":%d,%s%s}`, 10+m.IntN(10), machine, mounts)
	if id := m.made("create pod", team, pods, body); id != "" {
		m.live = append(m.live, thing{kind: pods, id: id})
	}
}

// made creates something for a team.
func (m *month) made(what, team, path, body string) (id string) {
	m.t.Helper()
	a, err := m.ask(m.IntN(2), keyOf(team), http.MethodPost, path, body)
	if err != nil || a.status >= 500 {
		m.t.Fatalf("%s: %d %s (%v)", body, a.status, a.body, err)
	}
	if a.status != http.StatusCreated {
		m.done[fmt.Sprint(what, " ", a.status, detail(a))]++
		return ""
	}
	m.done[what]++
	m.owner[a.id()] = team
	return a.id()
}

// does reports whether a call was carried out.
func (m *month) does(what, team, method, path, body string) bool {
	m.t.Helper()
	a, err := m.ask(m.IntN(2), keyOf(team), method, path, body)
	if err != nil || a.status >= 500 {
		m.t.Fatalf("%s: %d %s (%v)", path, a.status, a.body, err)
	}
	if a.status >= 300 {
		m.done[fmt.Sprint(what, " ", a.status, detail(a))]++
		return false
	}
	m.done[what]++
	return true
}

// detail is why a call was refused.
func detail(a answer) string {
	var p struct{ Detail string }
	_ = json.Unmarshal([]byte(a.body), &p) // an answer without one has none
	return p.Detail
}

// billed is the platform's bill of the month, by team; that of "" is the sum.
func (m *month) billed() map[string]float64 {
	m.t.Helper()
	billed := make(map[string]float64)
	for _, kind := range []struct{ path, id string }{{"pods", "podId"}, {"network-volumes", "networkVolumeId"}, {"serverless", "serverlessId"}} {
		var bill struct{ Records []map[string]any }
		a := m.outside(http.MethodGet, "/v2/billing/"+kind.path+"?bucketSize=month&lastN=1", "")
		if err := json.Unmarshal([]byte(a.body), &bill); err != nil {
			m.t.Fatal(err)
		}
		for _, r := range bill.Records {
			id, _ := r[kind.id].(string)
			amount, ok := r["totalAmount"].(float64)
			if !ok {
				m.t.Fatalf("a record without an amount: %v", r)
			}
			billed[m.owner[id]] += amount
			billed[""] += amount
		}
	}
	return billed
}

// compare holds the ledger, its history and its export against the bill.
func (m *month) compare(billed map[string]float64) {
	m.t.Helper()
	if len(billed) != len(teams)+1 {
		m.t.Errorf("%d teams were billed, want all %d", len(billed)-1, len(teams))
	}
	history, export := m.history(), m.export()
	state := m.state()
	for team, usd := range billed {
		scope := ledger.Scope{Kind: ledger.KindTeam, ID: team}
		if team == "" {
			scope = ledger.Scope{Kind: ledger.KindOrg}
		}
		for name, got := range map[string]float64{
			"accrued": float64(balance(&state, scope).Month) / 1e6, "history": history[team], "export": export[team],
		} {
			if math.Abs(got-usd) >= 0.005 {
				m.t.Errorf("%s: %s %.6f, billed %.6f: off by %.6f", scope, name, got, usd, got-usd)
			}
		}
	}
	m.t.Logf("%v; billed %v", m.done, billed)
}

// march is the range of the month.
const march = "org=acme&from=2027-03-01&to=2027-04-01"

// history is what `tollgate spend history` adds up to, by team; that of "" is the sum.
func (m *month) history() map[string]float64 {
	m.t.Helper()
	sums := make(map[string]float64)
	for _, bucket := range []string{"hour", "day", "month", "total"} {
		got := make(map[string]float64)
		costs := get[money.Costs](m.site, "/admin/spend/history?"+march+"&by=team&by=gpu&bucket="+bucket)
		for _, r := range costs.Rows {
			got[r.Team] += dollars(m.t, r.USD)
			got[""] += dollars(m.t, r.USD)
		}
		if total := dollars(m.t, costs.Total); math.Abs(got[""]-total) > 1e-4 {
			m.t.Errorf("by %s, the rows add up to %.6f, and the total says %.6f", bucket, got[""], total)
		}
		for team, usd := range got {
			if bucket != "hour" && math.Abs(usd-sums[team]) > 1e-4 {
				m.t.Errorf("team %q has cost %.6f by %s, and %.6f by hour", team, usd, bucket, sums[team])
			}
		}
		sums = got
	}
	return sums
}

// export is the sum of the export, by sub-account; that of "" is the sum.
func (m *month) export() map[string]float64 {
	m.t.Helper()
	sums := make(map[string]float64)
	for _, row := range exportOf(m.site, march+"&bucket=day") {
		sums[row["SubAccountId"]] += dollars(m.t, row["BilledCost"])
		sums[""] += dollars(m.t, row["BilledCost"])
	}
	return sums
}

// exportOf returns the rows of an export, each by column.
func exportOf(s *site, query string) []map[string]string {
	s.t.Helper()
	rows, err := csv.NewReader(strings.NewReader(s.admin("/admin/spend/export?" + query))).ReadAll()
	if err != nil {
		s.t.Fatal(err)
	}
	list := make([]map[string]string, 0, len(rows)-1)
	for _, r := range rows[1:] {
		row := make(map[string]string, len(r))
		for i, name := range rows[0] {
			row[name] = r[i]
		}
		list = append(list, row)
	}
	return list
}

// foreseen holds the forecasts against the spending that followed.
func (m *month) foreseen() (came outcomes) {
	m.t.Helper()
	actual := make(map[int]float64)
	total := 0.0
	for _, r := range get[money.Costs](m.site, "/admin/spend/history?"+march+"&bucket=day").Rows {
		actual[r.Start.Day()] = dollars(m.t, r.USD)
		total += actual[r.Start.Day()]
	}
	var days, months []float64
	for _, f := range m.forecasts {
		i := slices.IndexFunc(f.Scopes, func(s money.Forecast) bool { return s.Scope == "organisation" })
		one, day := f.Scopes[i], f.At.Day()
		days = append(days, math.Abs(dollars(m.t, one.Day.Expected)/actual[day]-1))
		if day >= 8 {
			months = append(months, math.Abs(dollars(m.t, one.Month.Expected)/total-1))
		}
		within := func(e money.Estimate, came float64) float64 {
			if dollars(m.t, e.Low) <= came && came <= dollars(m.t, e.High) {
				return 1
			}
			return 0
		}
		came.days = append(came.days, within(one.Day, actual[day]))
		came.months = append(came.months, within(one.Month, total))
	}
	m.t.Logf("%d forecasts: off by %.1f%% for the day, %.1f%% for the month; within the range %.0f%% of days, %.0f%% of months",
		len(m.forecasts), 100*mean(days), 100*mean(months), 100*mean(came.days), 100*mean(came.months))
	if mean(days) > 0.1 || mean(months) > 0.25 {
		m.t.Errorf("forecasts of the day are off by %.3f, and of the month by %.3f", mean(days), mean(months))
	}
	return came
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

func dollars(t *testing.T, text string) float64 {
	t.Helper()
	usd, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return usd
}

// get asks the admin API.
func get[T any](s *site, target string) (out T) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.admin(target)), &out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// admin is the body of an answer of the admin API.
func (s *site) admin(target string) string {
	s.t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, target, http.NoBody)
	r.Host = "127.0.0.1"
	s.gateways[0].AdminHandler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		s.t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	return w.Body.String()
}
