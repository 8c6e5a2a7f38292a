package parity

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

// team puts a lead and two mates into team research of acme, and budgets on teams; grants are the
// exceptions that the lead may approve.
func team(grants string) option {
	return func(d *door) {
		d.text = strings.Replace(d.text, "{id: research}, {id: platform}", "{id: research, budget: {per_hour: 8, per_day: 90}"+grants+"}, {id: platform, budget: {per_hour: 9}}", 1)
		d.text = strings.Replace(d.text, "      - {id: key_platform,", `      - {id: key_lead, team: research, sha256: SHA256(key_lead), roles: [operator, lead], owner: Lena}
      - {id: key_mate, team: research, sha256: SHA256(key_mate), roles: [operator], owner: mo}
      - {id: key_twin, team: research, sha256: SHA256(key_twin), roles: [operator], owner: "lena "}
      - {id: key_platform,`, 1)
	}
}

// own asks about the caller's own things, and reads the answer.
func own[T any](t *testing.T, d *door, key, target string) T {
	t.Helper()
	a := d.ask(t, request("GET", "/tollgate/"+target, key, ""))
	var out T
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil || a.Status != 200 || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s by %s: %d %s (%v), want 200 that is not stored", target, key, a.Status, a.Body, err)
	}
	return out
}

// keysOf lists the keys that decisions are of, each once.
func keysOf(t *testing.T, d *door, key, query string) (keys []string) {
	t.Helper()
	for _, s := range own[struct{ Decisions []explain.Summary }](t, d, key, "decisions"+query).Decisions {
		keys = append(keys, s.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Callers see their own things, leads their team's, and nobody those of another team or
// organisation.
func TestCallersSeeTheirOwn(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for _, key := range []string{"key_research", "key_mate", "key_platform"} {
			if a := d.ask(t, request("POST", "/v2/pods", key, podL4)); a.Status != 201 {
				t.Fatalf("create by %s: %d %s", key, a.Status, a.Body)
			}
		}
		me := own[selfservice.Me](t, d, "key_mate", "me?forecast=true")
		if me.Org != "acme" || me.Team != "research" || me.Key != "key_mate" || !slices.Equal(me.Roles, []string{"operator"}) || me.Grants != nil {
			t.Errorf("me = %+v", me)
		}
		var hour, day bool
		for _, b := range me.Budgets {
			hour = hour || b.Scope == "team research" && b.Name == "per_hour" && b.Limit == "8" && b.Used == "0.86548" && b.Left == "7.13452" && b.Ends == nil
			day = day || b.Scope == "team research" && b.Name == "per_day" && b.Forecast != nil && b.Ends != nil && b.Ends.Format("2006-01-02T15:04") == "2026-11-22T00:00"
			if strings.Contains(b.Scope, "platform") {
				t.Errorf("a mate of research sees the budget %+v", b)
			}
		}
		if !hour || !day {
			t.Errorf("budgets = %+v, want those of the team with what two pods take, and the day's end", me.Budgets)
		}
		for key, want := range map[string][]string{
			"key_mate": {"key_mate"}, "key_research": {"key_research"}, "key_platform": {"key_platform"}, "key_globex": nil,
			"key_lead": {"key_mate", "key_research"},
		} {
			var resources, spent []string
			if key != "key_globex" { // which has no budgets
				for _, r := range own[struct{ Resources []selfservice.Resource }](t, d, key, "resources").Resources {
					resources = append(resources, r.Key)
				}
				for _, r := range own[struct{ Rows []struct{ Key string } }](t, d, key, "spend?by=key&bucket=total").Rows {
					spent = append(spent, r.Key)
				}
				slices.Sort(resources)
				slices.Sort(spent)
				if !slices.Equal(resources, want) {
					t.Errorf("%s sees resources of %v, want %v", key, resources, want)
				}
			}
			for _, k := range spent {
				if !slices.Contains(want, k) {
					t.Errorf("%s sees what %s spent", key, k)
				}
			}
			if got := keysOf(t, d, key, ""); key != "key_lead" && key != "key_globex" && !slices.Equal(got, want) || slices.Contains(got, "key_platform") && key != "key_platform" {
				t.Errorf("%s sees decisions of %v, want %v", key, got, want)
			}
		}
		if got := keysOf(t, d, "key_lead", "?key=key_mate"); !slices.Equal(got, []string{"key_mate"}) {
			t.Errorf("a lead asks for a key of its team and sees %v", got)
		}
		if got := keysOf(t, d, "key_lead", "?key=key_platform"); got != nil {
			t.Errorf("a lead asks for a key of another team and sees %v", got)
		}
	}, team(""))
}

// The shown spending is the caller's own, and a lead's team's by key.
func TestCallersSeeWhatTheySpent(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", team(""))
	for _, key := range []string{"key_research", "key_mate", "key_platform"} {
		d.ask(t, request("POST", "/v2/pods", key, podL4))
	}
	d.advance(2 * 3600e9)
	type costs struct {
		Total string
		Rows  []struct{ Key, USD string }
	}
	mate, lead := own[costs](t, d, "key_mate", "spend"), own[costs](t, d, "key_lead", "spend?by=key&bucket=total")
	if !strings.HasPrefix(mate.Total, "0.86") || !strings.HasPrefix(lead.Total, "1.73") || len(lead.Rows) != 2 {
		t.Errorf("mate %+v, lead %+v, want what one pod and what two cost in two hours", mate, lead)
	}
}

// A caller that names another's team, key or organisation is told that there is no such parameter, or nothing.
func TestCallersCannotNameOthers(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		others := d.ask(t, request("POST", "/v2/pods", "key_platform", podL4)).Header.Get("X-Tollgate-Decision")
		mine := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)).Header.Get("X-Tollgate-Decision")
		foreign := d.ask(t, request("GET", "/v2/nothing", "key_globex", "")).Header.Get("X-Tollgate-Decision")
		for _, tt := range []struct {
			key, target, body string
			want              int
		}{
			{"key_research", "decisions?org=globex", "", 400},
			{"key_research", "decisions?org=acme", "", 400},
			{"key_research", "decisions?team=platform", "", 400},
			{"key_research", "decisions?key=key_platform", "", 400},
			{"key_research", "decisions?Org=globex", "", 400},
			{"key_research", "decisions?org=", "", 400},
			{"key_research", "decisions?limit=0", "", 400},
			{"key_research", "spend?team=platform", "", 400},
			{"key_research", "spend?key=key_mate", "", 400},
			{"key_research", "resources?team=platform", "", 400},
			{"key_research", "me?org=globex", "", 400},
			{"key_research", "approvals?org=globex", "", 400},
			{"key_research", "me", `{"org":"globex"}`, 400},
			{"key_research", "decisions", `{"org":"globex"}`, 400},
			{"key_lead", "decisions?team=platform", "", 400},
			{"key_lead", "decisions?org=globex", "", 400},
			{"key_lead", "spend?team=platform", "", 400},
			{"key_lead", "resources?org=globex", "", 400},
			{"key_research", "decisions/" + others, "", 404},
			{"key_lead", "decisions/" + others, "", 404},
			{"key_globex", "decisions/" + others, "", 404},
			{"key_mate", "decisions/" + mine, "", 404},
			{"key_lead", "decisions/" + foreign, "", 404},
			{"key_lead", "decisions/nothing", "", 404},
			{"key_lead", "decisions/" + mine, "", 200},
			{"key_research", "decisions/" + mine, "", 200},
			{"key_nowhere", "me", "", 401},
		} {
			a := d.ask(t, request("GET", "/tollgate/"+tt.target, tt.key, tt.body))
			if a.Status != tt.want || a.Status >= 400 && a.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s by %s: %d %s %s, want %d", tt.target, tt.key, a.Status, a.Header.Get("Content-Type"), a.Body, tt.want)
			}
			if tt.want != 200 && regexp.MustCompile(`key_platform|platform,|team platform|"globex"`).MatchString(strings.ReplaceAll(a.Body, tt.target, "")) {
				t.Errorf("%s by %s names others: %s", tt.target, tt.key, a.Body)
			}
		}
	}, team(""))
}

// A revoked key sees nothing any more, and one that is moved sees its new team alone.
func TestRevokedKeysSeeNothing(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", team(""))
	secret := d.make(t, `{"id":"intern","team":"research","roles":["operator"]}`)
	if me := own[selfservice.Me](t, d, secret, "me"); me.Key != "intern" {
		t.Errorf("me = %+v", me)
	}
	if status, body := d.operate(t, "POST", "/revoke", map[string][]string{"org": {"acme"}, "id": {"intern"}}); status >= 300 {
		t.Fatalf("revoke: %d %s", status, body)
	}
	for _, target := range []string{"me", "spend", "resources", "decisions", "approvals"} {
		if a := d.ask(t, request("GET", "/tollgate/"+target, secret, "")); a.Status != 401 {
			t.Errorf("%s: %d %s, want 401", target, a.Status, a.Body)
		}
	}
}

// Callers are told which policy refused and what would have to change, and nothing of policies that are tried out.
func TestCallersAreToldWhy(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", under(`
- policy: price_ceiling
  params: {max_usd_per_hour: 0.4}
- policy: gpu_count
  mode: shadow
  params: {max_per_pod: 0}
`))
	a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
	got := own[selfservice.Decision](t, d, "key_research", "decisions/"+a.Header.Get("X-Tollgate-Decision"))
	if got.Verdict != explain.Refused || !slices.Equal(got.Denied, []string{"price_ceiling"}) || len(got.ToPass) != 1 || len(got.Calls) != 1 || len(got.Calls[0].Policies) != 1 {
		t.Errorf("%d %s\ndecision = %+v", a.Status, a.Body, got)
	}
	full := asOperator[explain.Report](t, d, "GET", "/admin/decisions/"+got.DecisionID)
	if !slices.Contains(full.Shadowed, "gpu_count") {
		t.Fatalf("the shadow did not speak: %+v", full)
	}
	for _, target := range []string{"decisions", "decisions/" + got.DecisionID} {
		if a := d.ask(t, request("GET", "/tollgate/"+target, "key_research", "")); strings.Contains(a.Body, "gpu_count") {
			t.Errorf("%s tells of a shadow: %s", target, a.Body)
		}
	}
}

// answers posts a lead's answer.
func (d *door) answers(t *testing.T, key, id, verb string, header ...string) answer {
	t.Helper()
	return d.ask(t, request("POST", "/tollgate/approvals/"+id+"/"+verb, key, "", header...))
}

const letting = ", grants: {per_hour: 0.44}"

// A lead grants what an operator lets it, for others of its team, once; you cannot approve your own request.
func TestLeadsGrantForTheirTeam(t *testing.T) {
	t.Parallel()
	create := func(key, body string) string { return request("POST", "/v2/pods", key, body) }
	eachDoor(t, func(t *testing.T, d *door) {
		if me := own[selfservice.Me](t, d, "key_lead", "me"); me.Grants == nil || me.Grants.PerHour != "0.44" {
			t.Errorf("me = %+v, want what the lead may grant", me)
		}
		made := d.make(t, `{"id":"intern","team":"research","roles":["operator"],"owner":"bob"}`)
		ids := map[string]string{}
		for _, key := range []string{"key_mate", "key_twin", "key_lead", "key_research", "key_platform", made} {
			ids[key] = refusedWith(t, d.ask(t, create(key, podL4)), 403)
		}
		dear := approvalID.FindString(d.ask(t, create("key_mate", strings.Replace(podL4, "NVIDIA L4", "NVIDIA GeForce RTX 4090", 1))).Body)
		for name, tt := range map[string]struct {
			key, id, verb string
			want          int
		}{
			"his own":                          {"key_lead", ids["key_lead"], "grant", 403},
			"his own by another key of his":    {"key_lead", ids["key_twin"], "grant", 403},
			"of a key without an owner":        {"key_lead", ids["key_research"], "grant", 403},
			"of a key whose secret it can get": {"key_lead", ids[made], "grant", 403},
			"another team's":                   {"key_lead", ids["key_platform"], "grant", 404},
			"another team's, denied":           {"key_lead", ids["key_platform"], "deny", 404},
			"none":                             {"key_lead", "ap-nothing", "grant", 404},
			"too dear":                         {"key_lead", dear, "grant", 403},
			"dearer than it may":               {"key_lead", ids["key_mate"], "grant?max_usd=0.45", 403},
			"no price":                         {"key_lead", ids["key_mate"], "grant?max_usd=x", 403},
			"less than its price":              {"key_lead", ids["key_mate"], "grant?max_usd=0.1", 400},
			"two prices":                       {"key_lead", ids["key_mate"], "grant?max_usd=0.1&max_usd=99", 400},
			"in another's name":                {"key_lead", ids["key_mate"], "grant?by=ada", 400},
			"for another organisation":         {"key_lead", ids["key_mate"], "grant?org=globex", 400},
			"another id":                       {"key_lead", ids["key_mate"], "grant?id=" + ids["key_lead"], 400},
			"for ever":                         {"key_lead", ids["key_mate"], "grant?for=9000h", 400},
			"by a mate":                        {"key_research", ids["key_mate"], "grant", 403},
			"by a mate, denied":                {"key_research", ids["key_mate"], "deny", 403},
			"by an admin of another team":      {"key_platform", ids["key_mate"], "grant", 403},
			"by another organisation":          {"key_globex", ids["key_mate"], "grant", 403},
			"by a stranger":                    {"key_nowhere", ids["key_mate"], "grant", 401},
		} {
			if a := d.answers(t, tt.key, tt.id, tt.verb); a.Status != tt.want {
				t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, tt.want)
			}
		}
		if a := d.answers(t, "key_lead", ids["key_mate"], "grant", "Tollgate-Dry-Run: true"); a.Status == 200 && strings.Contains(a.Body, `"granted"`) {
			t.Errorf("a dry run: %d %s", a.Status, a.Body)
		}
		if _, err := d.gateway.Questions().Explain(t.Context(), gatewayQuestion("key_lead", "POST", "/tollgate/approvals/"+ids["key_mate"]+"/grant")); err != nil {
			t.Errorf("explain: %v", err)
		}
		for _, r := range d.asked(t, "acme") {
			if r.State != approval.Pending {
				t.Fatalf("%+v, want all requests pending", r)
			}
		}
		var seen []string
		for _, r := range own[struct{ Approvals []approval.Record }](t, d, "key_lead", "approvals").Approvals {
			seen = append(seen, r.Key)
		}
		if slices.Contains(seen, "key_platform") || !slices.Contains(seen, "key_mate") {
			t.Errorf("a lead sees requests of %v", seen)
		}
		if mine := own[selfservice.Me](t, d, "key_mate", "me").Approvals; len(mine) != 2 || mine[0].Key != "key_mate" || mine[1].Key != "key_mate" {
			t.Errorf("a mate sees the requests %+v, want its two", mine)
		}
		if a := d.answers(t, "key_lead", ids["key_mate"], "grant?reason=a+demo"); a.Status != 200 || field(t, a.Body, "state") != "granted" {
			t.Fatalf("grant: %d %s", a.Status, a.Body)
		}
		if a := d.ask(t, create("key_mate", podL4)); a.Status != 201 {
			t.Errorf("the call that was granted: %d %s", a.Status, a.Body)
		}
		refusedWith(t, d.ask(t, create("key_mate", podL4)), 403)
		if a := d.answers(t, "key_lead", dear, "deny?reason=one+is+enough"); a.Status != 200 || field(t, a.Body, "state") != "denied" {
			t.Errorf("deny: %d %s", a.Status, a.Body)
		}
		for _, r := range d.asked(t, "acme") {
			if r.ID == ids["key_mate"] && (r.State != approval.Used || r.Answer.By != "key_lead" || r.Answer.Reason != "a demo") {
				t.Errorf("%+v, want it used, and granted by the lead", r)
			}
		}
	}, under(approvableCeiling), team(letting))
}

// Without the setting, leads cannot answer requests. With it, they can approve calls that exceed a budget of their team or of its keys, but
// not a budget of the organisation or of another team.
func TestLeadsGrantWhatAnOperatorLets(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", under(approvableCeiling), team(""))
	id := refusedWith(t, d.ask(t, request("POST", "/v2/pods", "key_mate", podL4)), 403)
	for _, verb := range []string{"grant", "deny"} {
		if a := d.answers(t, "key_lead", id, verb); a.Status != 403 {
			t.Errorf("%s without grants: %d %s, want 403", verb, a.Status, a.Body)
		}
	}
	d = openDoor(t, "http", team(letting), func(d *door) {
		d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    budget: {per_hour: 0.1, approvable: true}", 1)
	})
	id = refusedWith(t, d.ask(t, request("POST", "/v2/pods", "key_mate", podL4)), 402)
	if a := d.answers(t, "key_lead", id, "grant"); a.Status != 403 || !strings.Contains(a.Body, "budget organisation per_hour is not a budget of team research") {
		t.Errorf("a budget of the organisation: %d %s, want 403", a.Status, a.Body)
	}
	d = openDoor(t, "http", team(", grants: {per_hour: 8}"), func(d *door) {
		for _, old := range []string{"{per_hour: 9}", "{per_hour: 8, per_day: 90}"} {
			d.text = strings.Replace(d.text, old, "{per_hour: 0.5, approvable: true}", 1)
		}
		d.text = strings.Replace(d.text, "owner: mo}", "owner: mo, budget: {per_hour: 0.5, approvable: true}}", 1)
	})
	for _, tt := range []struct {
		owner, budget string
		want          int
	}{{"key_platform", "team platform", 403}, {"key_mate", "team research", 200}} {
		made := d.ask(t, request("POST", "/v2/pods", tt.owner, podL4))
		pod := fmt.Sprint(field(t, made.Body, "id"))
		refused := d.ask(t, request("PATCH", "/v2/pods/"+pod, "key_mate", `{"disk":2000}`))
		id = refusedWith(t, refused, 402)
		a := d.answers(t, "key_lead", id, "grant")
		if a.Status != tt.want || !strings.Contains(a.Body, "budget "+tt.budget+" per_hour") {
			t.Errorf("%s: %d %s, want %d", tt.budget, a.Status, a.Body, tt.want)
		}
		if a.Status == 200 && !strings.Contains(a.Body, "budget key key_mate per_hour") {
			t.Errorf("%s: %s, want the key's budget lifted too", tt.budget, a.Body)
		}
	}
}

// Answers of a lead are in the audit log before and behind, and is not done where it cannot be
// recorded.
func TestAnswersOfLeadsAreAudited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	d := openDoor(t, "http", under(approvableCeiling), team(letting), audited(path))
	id := refusedWith(t, d.ask(t, request("POST", "/v2/pods", "key_mate", podL4)), 403)
	if a := d.answers(t, "key_lead", id, "grant?for=1m"); a.Status != http.StatusOK {
		t.Fatalf("grant: %d %s", a.Status, a.Body)
	}
	d.answers(t, "key_lead", id, "deny?reason="+strings.Repeat("x", 501))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"phase":"intent",.*"team":"research","key":"key_lead",.*"operation":"self.approvals.grant","query":"for=1m.u0026id=` + id + `.u0026max_usd=0.43274.u0026org=acme","kind":"approval","resource":"` + id + `"`,
		`"phase":"result",.*"resource":"` + id + `","summary":".*","status":200`,
		`"phase":"intent",.*"operation":"self.approvals.deny"`,
		`"phase":"result",.*"resource":"` + id + `","status":400`,
	} {
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("the audit log has no line like %s:\n%s", want, text)
		}
	}
}

func gatewayQuestion(key, method, target string) *operator.ExplainBody {
	return &operator.ExplainBody{Org: "acme", Key: key, Method: method, Path: target}
}
