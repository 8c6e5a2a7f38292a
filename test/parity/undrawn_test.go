package parity

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// budgetsOf returns the budgets of a scope, by name.
func budgetsOf(scopes []money.Balance, scope string) map[string]money.Budget {
	by := make(map[string]money.Budget)
	for _, s := range scopes {
		for _, b := range s.Budgets {
			if s.Scope == scope {
				by[b.Name] = b
			}
		}
	}
	return by
}

// A configured quota is shown before anybody has drawn on it, and then with the rest of it as
// callers see it, and the day on which it will be used up.
func TestWhatIsConfiguredIsShown(t *testing.T) {
	t.Parallel()
	forecastOf := func(t *testing.T, d *door) (budgets []money.Budget) {
		t.Helper()
		for _, s := range asOperator[money.Forecasts](t, d, "GET", "/admin/spend/forecast?org=acme&team=research").Scopes {
			budgets = append(budgets, s.Budgets...)
		}
		return budgets
	}
	eachDoor(t, func(t *testing.T, d *door) {
		undrawn := map[string]money.Budget{
			"per_day":   {Name: "per_day", Limit: "6", Used: "0", Reserved: "0", Left: "6"},
			"per_month": {Name: "per_month", Limit: "40", Used: "0", Reserved: "0", Left: "40"},
			"gpus":      {Name: "gpus", Limit: "3", Used: "0", Reserved: "0", Left: "3"},
		}
		if diff := cmp.Diff(undrawn, budgetsOf(d.ledger(t).Scopes, "team research")); diff != "" {
			t.Errorf("before anything is rented (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]money.Budget{undrawn["per_day"], undrawn["per_month"]}, forecastOf(t, d)); diff != "" {
			t.Errorf("forecast before anything is rented (-want +got):\n%s", diff)
		}
		told := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)).Header.Get("X-Tollgate-Budget")
		// 0.43274 USD per hour from 10:00 on come to 6.06 today and to 37.2 by the end of
		// the 24th. An hour of it is reserved.
		rented := map[string]money.Budget{
			"per_day":   {Name: "per_day", Limit: "6", Used: "0", Reserved: "0.43274", Left: "5.56726", UsedUp: "2026-11-21"},
			"per_month": {Name: "per_month", Limit: "40", Used: "0", Reserved: "0.43274", Left: "39.56726", UsedUp: "2026-11-25"},
			"gpus":      {Name: "gpus", Limit: "3", Used: "1", Reserved: "0", Left: "2"},
		}
		got := budgetsOf(d.ledger(t).Scopes, "team research")
		if diff := cmp.Diff(rented, got); diff != "" {
			t.Errorf("with a pod (-want +got):\n%s", diff)
		}
		if want := `"team research gpus";limit=3;left=` + got["gpus"].Left; told != want {
			t.Errorf("the caller was told %s, want %s", told, want)
		}
		if diff := cmp.Diff([]money.Budget{rented["per_day"], rented["per_month"]}, forecastOf(t, d)); diff != "" {
			t.Errorf("forecast with a pod (-want +got):\n%s", diff)
		}
	}, budgeted("{per_day: 6, per_month: 40, gpus: 3}"))
	// Of a budget for keys only there is no row of teams that have none.
	eachDoor(t, func(t *testing.T, d *door) {
		for _, s := range d.ledger(t).Scopes {
			if s.Scope != "key key_tiny" {
				t.Errorf("%+v is shown, which has no budget", s)
			}
		}
		if got := budgetsOf(d.ledger(t).Scopes, "key key_tiny")["pods"]; got.Left != "2" {
			t.Errorf("budget of a key: %+v, want 2 pods left", got)
		}
	}, func(d *door) {
		d.text = strings.Replace(d.text, "SHA256(key_tiny), roles: [operator]", "SHA256(key_tiny), roles: [operator], budget: {pods: 2}", 1)
	})
}

// window aliases the answer, because limits is another name here.
type window = operator.Window

// So are quotas of calls, of classes, too; what limits nothing is not.
func TestConfiguredQuotasAreShown(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		var list struct{ Windows []window }
		show := func() map[string]window {
			t.Helper()
			if code := d.asOperator(t, http.MethodGet, "/admin/limits?org=acme", "", &list); code != http.StatusOK {
				t.Fatalf("limits: %d", code)
			}
			by := make(map[string]window)
			for _, w := range list.Windows {
				if _, twice := by[w.Scope+" "+w.Window]; twice {
					t.Errorf("%s %s is shown twice", w.Scope, w.Window)
				}
				by[w.Scope+" "+w.Window] = w
			}
			return by
		}
		before := show()
		for name, want := range map[string]window{
			"key:key_tiny minute":                 {Scope: "key:key_tiny", Window: "minute", Limit: 5, Remaining: 5, ResetSeconds: 40},
			"key:key_tiny day":                    {Scope: "key:key_tiny", Window: "day", Limit: 1000, Remaining: 1000, ResetSeconds: 50380},
			"class:creates/team/research hour":    {Scope: "class:creates/team/research", Window: "hour", Limit: 7, Remaining: 7, ResetSeconds: 3580},
			"class:reads/key/key_research minute": {Scope: "class:reads/key/key_research", Window: "minute", Limit: 9, Remaining: 9, ResetSeconds: 40},
			"class:everything day":                {Scope: "class:everything", Window: "day", Limit: 11, Remaining: 11, ResetSeconds: 50380},
		} {
			if diff := cmp.Diff(want, before[name]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		for name, w := range before {
			if w.Limit == 0 || strings.Contains(name, "key_exempt") || strings.HasPrefix(name, "team:") || strings.HasPrefix(name, "org:") {
				t.Errorf("%s is shown, which limits nothing", name)
			}
		}
		d.ask(t, request("GET", "/v2/pods", "key_tiny", ""))
		after := show()
		if got := after["key:key_tiny minute"]; got.Used != 1 || got.Remaining != 4 {
			t.Errorf("after a call: %+v, want 1 used and 4 left", got)
		}
		if got := after["key:key_research minute"]; got.Remaining != 600 {
			t.Errorf("another key, after a call: %+v, want 600 left", got)
		}
	}, func(d *door) {
		d.text = strings.Replace(d.text, "    teams: [{id: research}", `    classes:
      - {id: creates, operations: [createPod], per: team, limits: {hour: 7}}
      - {id: reads, operations: [listPods], limits: {minute: 9}}
      - {id: everything, operations: [createPod, listPods], per: org, limits: {day: 11}}
    teams: [{id: research}`, 1)
	})
}

// A dry run expects what the call gets when a class takes several units a call and fewer are left.
func TestDryRunKnowsTheCostOfAClass(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		list := request("GET", "/v2/pods", "key_research", "")
		for i, want := range []int{200, 429} {
			x := d.explain(t, &operator.ExplainBody{Method: "GET", Path: "/v2/pods", Key: "key_research"})
			a := d.ask(t, list)
			if refused := x.Status == 429; refused != (want == 429) || a.Status != want {
				t.Errorf("call %d: explained as %d, answered %d, want %d", i+1, x.Status, a.Status, want)
			}
		}
	}, func(d *door) {
		d.text = strings.Replace(d.text, "    teams: [{id: research}", `    classes: [{id: reads, operations: [listPods], cost: 5, limits: {minute: 9}}]
    teams: [{id: research}`, 1)
	})
}
