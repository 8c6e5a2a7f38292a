package parity

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// lead makes key_research a lead with bounds, in a team with bounds.
func lead(d *door) {
	labelled(`[{name: project, required: true}, {name: step}, {name: grant}]`)(d)
	d.text = strings.Replace(d.text, "sha256: SHA256(key_research), roles: [operator], limits: {minute: 600",
		"sha256: SHA256(key_research), addresses: [127.0.0.0/8], expires: 2026-12-21T10:00:00Z, budget: {gpus: 4}, labels: [project, step], roles: [operator, lead], limits: {minute: 600", 1)
	d.text = strings.Replace(d.text, "{id: research}", "{id: research, limits: {minute: 100}, budget: {pods: 3}}", 1)
}

// A lead makes keys that can do no more than itself and its team, and those alone can
// it withdraw or replace.
func TestLeadsMakeKeys(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		post := func(key, target, body string) answer { return d.ask(t, request("POST", target, key, body)) }
		made := post("key_research", "/tollgate/keys", `{"id":"intern","owner":"bob","limits":{"minute":50}}`)
		if made.Status != 201 {
			t.Fatalf("create: %d %s", made.Status, made.Body)
		}
		secret := fmt.Sprint(field(t, made.Body, "secret"))
		d.expect(t, "the key that a lead made", secret, 200)
		k := d.record(t, "intern")
		if k.Team != "research" || k.By != "key_research" || k.Limits["minute"] != 50 || k.Limits["hour"] != 3000 || fmt.Sprint(k.Budget["gpus"]) != "4" ||
			len(k.Addresses) != 1 || fmt.Sprint(k.Labels) != "[project step]" || !k.Expires.Equal(time.Date(2026, 12, 21, 10, 0, 0, 0, time.UTC)) {
			t.Errorf("record = %+v, want the lead's own bounds where none was named", k)
		}
		digest := identity.DigestOf("chosen_by_a_lead").String()
		for name, spec := range map[string]string{
			"another team":            `{"id":"x","team":"platform"}`,
			"a lead":                  `{"id":"x","roles":["operator","lead"]}`,
			"an admin":                `{"id":"x","roles":["admin"]}`,
			"exempt":                  `{"id":"x","exempt":true}`,
			"more than its own":       `{"id":"x","limits":{"day":50001}}`,
			"more than its team":      `{"id":"x","limits":{"minute":101}}`,
			"more GPUs than its own":  `{"id":"x","budget":{"gpus":5}}`,
			"more pods than its team": `{"id":"x","budget":{"pods":4}}`,
			"approvable":              `{"id":"x","budget":{"approvable":true}}`,
			"later than its own end":  `{"id":"x","expires":"2026-12-21T10:00:01Z"}`,
			"from elsewhere":          `{"id":"x","addresses":["0.0.0.0/0"]}`,
			"a label it may not set":  `{"id":"x","labels":["project","grant"]}`,
			"without a label it must": `{"id":"x","labels":["step"]}`,
			"a secret it knows":       `{"id":"x","sha256":"` + digest + `"}`,
		} {
			// The team allows less than the lead's own quota: name the team's.
			if !strings.Contains(spec, `"limits"`) {
				spec = strings.Replace(spec, `{"id":"x"`, `{"id":"x","limits":{"minute":10}`, 1)
			}
			if a := post("key_research", "/tollgate/keys", spec); a.Status != 403 {
				t.Errorf("%s: %d %s, want 403", name, a.Status, a.Body)
			}
		}
		for name, tc := range map[string]struct {
			key, method, target, body string
			want                      int
		}{
			"an operator lists":            {"key_tiny", "GET", "/tollgate/keys", "", 403},
			"an admin of no team's lead":   {"key_platform", "POST", "/tollgate/keys", `{"id":"x"}`, 403},
			"a stranger":                   {"key_nowhere", "GET", "/tollgate/keys", "", 401},
			"its own creature":             {secret, "POST", "/tollgate/keys", `{"id":"x"}`, 403},
			"a member twice":               {"key_research", "POST", "/tollgate/keys", `{"id":"x","id":"y"}`, 400},
			"YAML":                         {"key_research", "POST", "/tollgate/keys", `id: x`, 400},
			"an unknown member":            {"key_research", "POST", "/tollgate/keys", `{"id":"x","admin":true}`, 422},
			"a former team":                {"key_research", "POST", "/tollgate/keys", `{"id":"x","limits":{"minute":50},"moved_from":"ops"}`, 422},
			"an id that is taken":          {"key_research", "POST", "/tollgate/keys", `{"id":"intern","limits":{"minute":50}}`, 409},
			"a key of the file":            {"key_research", "DELETE", "/tollgate/keys/key_tiny", "", 404},
			"itself":                       {"key_research", "POST", "/tollgate/keys/key_research/rotate", "", 404},
			"no key":                       {"key_research", "DELETE", "/tollgate/keys/nowhere", "", 404},
			"an overlap that is no length": {"key_research", "POST", "/tollgate/keys/intern/rotate?overlap=x", "", 400},
		} {
			if a := d.ask(t, request(tc.method, tc.target, tc.key, tc.body)); a.Status != tc.want {
				t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, tc.want)
			}
		}
		// What administrators made is theirs, in its team and elsewhere.
		d.make(t, `{"id":"strong","team":"research","roles":["admin"]}`)
		d.make(t, `{"id":"wide","team":"research"}`)
		d.make(t, `{"id":"theirs","team":"platform"}`)
		for target, want := range map[string]int{"strong/rotate": 403, "wide/rotate": 403, "theirs/rotate": 404} {
			if a := post("key_research", "/tollgate/keys/"+target, ""); a.Status != want {
				t.Errorf("%s: %d %s, want %d", target, a.Status, a.Body, want)
			}
		}
		for id, want := range map[string]int{"strong": 403, "wide": 204, "theirs": 404} {
			if a := d.ask(t, request("DELETE", "/tollgate/keys/"+id, "key_research", "")); a.Status != want {
				t.Errorf("revoke %s: %d %s, want %d", id, a.Status, a.Body, want)
			}
		}
		if a := d.ask(t, request("GET", "/tollgate/keys", "key_research", "")); a.Status != 200 || !strings.Contains(a.Body, `"intern"`) || strings.Contains(a.Body, `"theirs"`) || strings.Contains(a.Body, secret) {
			t.Errorf("list: %d %s, want those of its team", a.Status, a.Body)
		}

		dry := d.ask(t, request("DELETE", "/tollgate/keys/intern", "key_research", "", "Tollgate-Dry-Run: true"))
		d.expect(t, fmt.Sprintf("after a dry run, which was answered %d", dry.Status), secret, 200)
		rotated := post("key_research", "/tollgate/keys/intern/rotate?overlap=0s", "")
		if rotated.Status != 200 {
			t.Fatalf("rotate: %d %s", rotated.Status, rotated.Body)
		}
		d.expect(t, "the old secret", secret, 401)
		secret = fmt.Sprint(field(t, rotated.Body, "secret"))
		d.expect(t, "the new secret", secret, 200)
		if a := d.ask(t, request("DELETE", "/tollgate/keys/intern", "key_research", "")); a.Status != 204 {
			t.Errorf("revoke: %d %s, want 204", a.Status, a.Body)
		}
		d.expect(t, "revoked", secret, 401)
		if strings.Contains(d.logs.String(), secret) {
			t.Error("the log has a secret")
		}
	}, lead)
}

// A lead without the role operator makes viewers, and none of its keys has a bound that could mean two things. IDs of keys that have ended
// can be used again within their team.
func TestLeadsThatView(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		post := func(body string) answer { return d.ask(t, request("POST", "/tollgate/keys", "key_research", body)) }
		made := post(`{"id":"intern","limits":{"minute":50}}`)
		if k := d.record(t, "intern"); made.Status != 201 || fmt.Sprint(k.Roles) != "[viewer]" {
			t.Fatalf("create: %d %s with the roles %v, want a viewer", made.Status, made.Body, k.Roles)
		}
		old := fmt.Sprint(field(t, made.Body, "secret"))
		d.expect(t, "the viewer", old, 200)
		if a := post(`{"id":"x","limits":{"minute":50},"roles":["operator"]}`); a.Status != 403 {
			t.Errorf("an operator: %d %s, want 403", a.Status, a.Body)
		}
		for spec, member := range map[string]string{
			`"limits":{"minute":0}`: "limits.minute", `"limits":{"minute":50,"day":0}`: "limits.day", `"limits":{"minute":50},"budget":{"gpus":0}`: "budget.gpus",
			`"limits":{"minute":50},"budget":{"per_hour":0.00}`: "budget.per_hour", `"limits":{"minute":50},"budget":{"per_day":0.0}`: "budget.per_day",
		} {
			if a := post(`{"id":"x",` + spec + `}`); a.Status != 422 || !strings.Contains(a.Body, member+": must not be 0") {
				t.Errorf("%s: %d %s, want 422 about %s", spec, a.Status, a.Body, member)
			}
		}
		if a := post(`{"id":"intern","limits":{"minute":50}}`); a.Status != 409 {
			t.Errorf("an ID that is taken: %d %s, want 409", a.Status, a.Body)
		}
		if a := d.ask(t, request("DELETE", "/tollgate/keys/intern", "key_research", "")); a.Status != 204 {
			t.Fatalf("revoke: %d %s", a.Status, a.Body)
		}
		again := post(`{"id":"intern","owner":"carol","limits":{"minute":40}}`)
		if k := d.record(t, "intern"); again.Status != 201 || k.Owner != "carol" || k.State != "in force" || !k.Revoked.IsZero() || k.Revision != 3 {
			t.Fatalf("an ID of a revoked key: %d %s, %+v", again.Status, again.Body, k)
		}
		d.expect(t, "the secret of the revoked key", old, 401)
		d.expect(t, "the secret of the new key", fmt.Sprint(field(t, again.Body, "secret")), 200)
		d.make(t, `{"id":"theirs","team":"platform"}`)
		if status, body := d.operate(t, "POST", "/revoke", url.Values{"org": {"acme"}, "id": {"theirs"}}); status >= 300 {
			t.Fatalf("revoke: %d %s", status, body)
		}
		if a := post(`{"id":"theirs","limits":{"minute":50}}`); a.Status != 409 {
			t.Errorf("an ID of another team: %d %s, want 409", a.Status, a.Body)
		}
	}, lead, func(d *door) {
		d.text = strings.Replace(d.text, "roles: [operator, lead]", "roles: [viewer, lead]", 1)
	})
}

// A lead makes keys until its team has 100 that are in force.
func TestLeadsMakeAHundredKeys(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", lead)
	for i := range 100 {
		d.make(t, fmt.Sprintf(`{"id":"short-%d","team":"research","expires":"2026-11-21T12:00:00Z"}`, i))
	}
	for _, want := range []int{409, 201} {
		if a := d.ask(t, request("POST", "/tollgate/keys", "key_research", `{"id":"more","limits":{"minute":50}}`)); a.Status != want {
			t.Errorf("at %s: %d %s, want %d", d.clock.Now(), a.Status, a.Body, want)
		}
		d.advance(24 * time.Hour)
	}
}

// Changes by a lead are in the audit log, before and behind, without the secret.
func TestLeadsAreAudited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	d := openDoor(t, "http", lead, audited(path))
	made := d.ask(t, request("POST", "/tollgate/keys", "key_research", `{"id":"intern","limits":{"minute":50}}`))
	d.ask(t, request("DELETE", "/tollgate/keys/intern", "key_research", ""))
	for _, path := range []string{"me", "decisions?limit=2", "decisions?limit=3", "spend", "decisions/none", "keys"} {
		d.ask(t, request("GET", "/tollgate/"+path, "key_research", ""))
	}
	d.ask(t, request("GET", "/tollgate/decisions", "key_platform", "")) // no lead: these are its own
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"phase":"intent",.*"team":"research","key":"key_research",.*"operation":"keys.create","query":".*minute.*50.*","kind":"key","resource":"intern"`,
		`"phase":"result",.*"resource":"intern","status":201`,
		`"phase":"intent",.*"operation":"keys.revoke","kind":"key","resource":"intern"`,
		`"phase":"result",.*"resource":"intern","status":204`,
		`"phase":"read",.*"org":"acme","team":"research","key":"key_research",.*"operation":"self.decisions"`,
		`"phase":"read",.*"operation":"self.spend"`,
		`"phase":"read",.*"operation":"keys.list"`,
		`"phase":"read",.*"operation":"self.decision",.*"resource":"none"`,
	} {
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("the audit log has no line like %s:\n%s", want, text)
		}
	}
	if n := strings.Count(string(text), `"phase":"read"`); n != 4 {
		t.Errorf("%d looks, want 4: the key's own, and a second part of one view, are none\n%s", n, text)
	}
	if secret := fmt.Sprint(field(t, made.Body, "secret")); strings.Contains(string(text), secret) {
		t.Error("the audit log has the secret")
	}
}
