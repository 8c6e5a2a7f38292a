package spend

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// teams have a key each, which is called as they are.
var teams = []string{"research", "ops", "ml"} //nolint:gochecknoglobals // read only

const teamsConfig = `    budget: {per_month: 100000}
    teams: [{id: research}, {id: ops}, {id: ml}]
    keys:
      - {id: research, team: research, sha256: SHA256(key_research_month), roles: [admin], exempt: true}
      - {id: ops, team: ops, sha256: SHA256(key_ops_month), roles: [admin], exempt: true}
      - {id: ml, team: ml, sha256: SHA256(key_ml_month), roles: [admin], exempt: true}
`

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
}

// thing is a resource that exists.
type thing struct {
	kind, id string // kind is the path of its collection
	size     int    // of a volume
}

// TestAMonthAgreesWithTheBill lets teams live for a month at random, and wants what
// the ledger has accrued for each of them to be what the platform bills, to the cent.
func TestAMonthAgreesWithTheBill(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := newMonth(t, seed)
			end := time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)
			for next := m.clock.Now(); ; {
				next = next.Add(time.Duration(m.Int64N(int64(4 * time.Hour))))
				if !next.Before(end.Add(-time.Second)) {
					break
				}
				m.at(next)
				m.step()
			}
			m.at(end.Add(-time.Millisecond))
			for _, what := range []string{"create pod", "create volume", "stop", "start", "patch", "grow", "delete"} {
				if m.done[what] == 0 {
					t.Errorf("in the whole month there was no %s: %v", what, m.done)
				}
			}
			m.compare()
		})
	}
}

func newMonth(t *testing.T, seed uint64) *month {
	t.Helper()
	clock := platform.ManualClock(time.Date(2027, 3, 1, 0, 0, 1, 0, time.UTC))
	m := &month{
		Rand: rand.New(rand.NewPCG(seed, 7)), clock: clock, redis: miniredis.RunT(t),
		owner: make(map[string]string), done: make(map[string]int),
	}
	m.redis.SetTime(clock.Now())
	m.site = open(t, &plan{gateways: 2, config: teamsConfig, redis: m.redis.Addr(), clock: clock})
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

// compare holds the ledger against the platform's bill of the month.
func (m *month) compare() {
	m.t.Helper()
	billed := make(map[string]float64)
	for _, kind := range []struct{ path, id string }{{"pods", "podId"}, {"network-volumes", "networkVolumeId"}} {
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
	state := m.state()
	for team, usd := range billed {
		scope := spend.Scope{Kind: spend.KindTeam, ID: team}
		if team == "" {
			scope = spend.Scope{Kind: spend.KindOrg}
		}
		got := float64(balance(&state, scope).Month) / 1e6
		if math.Abs(got-usd) >= 0.005 {
			m.t.Errorf("%s: accrued %.6f, billed %.6f: off by %.6f", scope, got, usd, got-usd)
		}
	}
	m.t.Logf("%v; billed %v", m.done, billed)
}
