package parity

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// scopes are the pods and the accrued costs of the day of each scope that has any.
func (d *door) scopes(t *testing.T) map[string]string {
	t.Helper()
	got := make(map[string]string)
	for _, s := range d.ledger(t).Scopes {
		if s.Committed.Pods > 0 || s.Day != "0" {
			got[s.Scope] = fmt.Sprintf("%d pods, %s", s.Committed.Pods, s.Day)
		}
	}
	return got
}

// refused asks the gateway of the configuration in force for another pod.
func (d *door) refused(t *testing.T) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v2/pods", strings.NewReader(podL4))
	r.Header.Set("Authorization", "Bearer key_research")
	r.Header.Set("Content-Type", "application/json")
	d.gateway.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// owners are the teams and keys of resources.
func (d *door) owners(t *testing.T) map[string]int {
	t.Helper()
	got := make(map[string]int)
	for _, r := range d.ledger(t).Resources {
		got[r.Team+"/"+r.Key]++
	}
	return got
}

// A team that is renamed keeps what it has and what it has accrued: the first call under the new name finds the budget as the
// last one under the old name left it, after a reload and after a restart.
func TestARenamedTeamKeepsItsBudget(t *testing.T) {
	t.Parallel()
	const budget = "{gpus: 3, per_day: 20}"
	for _, restart := range []bool{false, true} {
		t.Run(map[bool]string{false: "reload", true: "restart"}[restart], func(t *testing.T) {
			t.Parallel()
			d := openDoor(t, "http", budgeted(budget), func(d *door) { d.text = strings.Replace(d.text, "teams: [research]", "teams: [platform]", 2) })
			d.reconcile(t)
			for range 3 {
				d.rented(t, podL4)
			}
			d.advance(time.Hour)
			d.reconcile(t)
			before := d.scopes(t)
			d.text = strings.NewReplacer("{id: research, budget: "+budget+"}", "{id: science, renamed_from: research, budget: "+budget+"}", "team: research", "team: science").Replace(d.text)
			if restart {
				d.gateway = newGateway(t, d)
			} else if err := d.gateway.Swap(load(t, d.text, d.upstream)); err != nil {
				t.Fatal(err)
			}
			if status, body := d.refused(t); status != 402 || !strings.Contains(body, "team science gpus exceeded: limit 3, used 3") {
				t.Errorf("the first call under the new name: %d %s, want 402", status, body)
			}
			if got := d.owners(t); len(got) != 1 || got["science/key_research"] != 3 {
				t.Errorf("the owners are %v, want science/key_research alone", got)
			}
			after := d.scopes(t)
			if after["team research"] != "" || after["team science"] != before["team research"] || after["organisation"] != before["organisation"] || after["key key_research"] != before["key key_research"] {
				t.Errorf("the scopes were %v and are %v", before, after)
			}
			// The old name has a history. A name that never was is a mistake.
			for team, want := range map[string]int{"science": 200, "research": 200, "finance": 404, "research&team=finance": 404} {
				for _, path := range []string{"history", "export"} {
					if code := d.asOperator(t, http.MethodGet, "/admin/spend/"+path+"?org=acme&team="+team, "", nil); code != want {
						t.Errorf("%s of team %s: %d, want %d", path, team, code, want)
					}
				}
			}
			// A call that began under the old name ends later.
			stray(t, d, "late")
			d.reconcile(t)
			d.advance(10 * time.Minute)
			d.reconcile(t)
			if after := d.scopes(t); after["team research"] != "" {
				t.Errorf("after calls under the old name the scopes are %v", after)
			}
		})
	}
}

// A key that moves leaves its resources with its former team, or takes them along, with what it has accrued, where moved_from
// says so. An operator moves them, too.
func TestAMovedKey(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", budgeted("{gpus: 3}"), func(d *door) {
		d.text = strings.Replace(strings.Replace(d.text, "teams: [research]", "teams: [platform]", 2), "{id: tiny}", "{id: tiny, budget: {gpus: 3}}, {id: other, budget: {gpus: 3}}", 1)
	})
	d.reconcile(t)
	for range 3 {
		d.rented(t, podL4)
	}
	d.advance(time.Hour)
	d.reconcile(t)
	d.text = strings.Replace(d.text, "{id: key_research, team: research,", "{id: key_research, team: tiny, moved_from: research,", 1)
	for range 2 { // a restart makes the same move
		d.gateway = newGateway(t, d)
		if status, body := d.refused(t); status != 402 || !strings.Contains(body, "team tiny gpus exceeded: limit 3, used 3") {
			t.Errorf("after the move: %d %s, want 402", status, body)
		}
	}
	want := map[string]string{"key key_research": "3 pods, 1.29822", "team tiny": "3 pods, 1.29822", "organisation": "3 pods, 1.29822"}
	if got := d.scopes(t); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the scopes are %v, want %v", got, want)
	}
	got := asOperator[money.AdoptedTeam](t, d, "POST", "/admin/spend/adopt-team?org=acme&from_team=tiny&to_team=other&key=key_research")
	if got != (money.AdoptedTeam{From: "tiny", To: "other", Key: "key_research", Resources: 3, Day: "1.29822", Month: "1.29822"}) {
		t.Errorf("adopted %+v", got)
	}
	if got := d.scopes(t); got["team other"] != "3 pods, 1.29822" || got["team tiny"] != "" {
		t.Errorf("the scopes are %v, want all with team other", got)
	}
	got = asOperator[money.AdoptedTeam](t, d, "POST", "/admin/spend/adopt-team?org=acme&from_team=other&to_team=research")
	if got.Resources != 3 || got.Day != "1.29822" {
		t.Errorf("adopted %+v", got)
	}
	for query, want := range map[string]string{"from_team=research&to_team=research": "the same team", "from_team=x": "to_team"} {
		if w := d.post(t, "/admin/spend/adopt-team?org=acme&"+query); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want 400 and %q", query, w.Code, w.Body, want)
		}
	}
}
