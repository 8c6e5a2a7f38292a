package decisions

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

func TestOutcomesAreClassified(t *testing.T) {
	t.Parallel()
	for want, events := range map[string][]telemetry.Event{
		explain.OutcomeAllowed:   {{Status: 200}, {Status: 404}, {Status: http.StatusTooManyRequests}, {}},
		explain.OutcomeDenied:    {{Status: 403, Refusal: string(problem.Forbidden)}, {Status: 400, Refusal: string(problem.Invalid)}, {Status: 403, Refusal: string(problem.BudgetExceeded)}},
		explain.OutcomeThrottled: {{Status: 429, Refusal: string(problem.RateLimited)}, {Status: 503, Refusal: string(problem.Overloaded)}},
		explain.OutcomeFailed:    {{Status: 502, Refusal: string(problem.UpstreamFailed)}, {Status: 500}},
	} {
		for _, e := range events {
			if got := explain.OutcomeOf(e.Refusal, e.Status); got != want {
				t.Errorf("status %d, refusal %q: %s, want %s", e.Status, e.Refusal, got, want)
			}
		}
	}
}

func TestOutcomesAreCounted(t *testing.T) {
	t.Parallel()
	server, now := miniredis.RunT(t), time.Date(2026, 11, 22, 16, 30, 0, 0, time.UTC)
	d := counting(t, server, &now)
	for _, x := range []struct {
		ago           time.Duration
		team, refusal string
	}{
		{time.Minute, "ops", ""},
		{time.Minute, "ops", "forbidden"},
		{8 * time.Minute, "research", "rate_limited"},
		{70 * time.Minute, "research", ""},
		{26 * time.Hour, "ops", "forbidden"},
		{31 * 24 * time.Hour, "ops", ""},
	} {
		d.counter.addOutcome(&telemetry.Event{Org: "acme", Team: x.team, Start: now.Add(-x.ago), Refusal: x.refusal})
	}
	for _, tt := range []struct {
		query string
		rows  int
		want  string
	}{
		{"org=acme", 25, `{"start":"2026-11-22T16:00:00Z","end":"2026-11-22T17:00:00Z","allowed":1,"denied":1,"throttled":1,"failed":0}`},
		{"org=acme", 25, `"total":{"start":"2026-11-21T16:00:00Z","end":"2026-11-22T16:30:00Z","allowed":2,"denied":1,"throttled":1,"failed":0}`},
		{"org=acme&since=1h&bucket=5m", 12, `{"start":"2026-11-22T16:20:00Z","end":"2026-11-22T16:25:00Z","allowed":0,"denied":0,"throttled":1,"failed":0}`},
		{"org=acme&since=7d&bucket=day", 8, `{"start":"2026-11-21T00:00:00Z","end":"2026-11-22T00:00:00Z","allowed":0,"denied":1,"throttled":0,"failed":0}`},
		{"org=acme&since=90d&bucket=total", 1, `"allowed":2,"denied":2,"throttled":1,"failed":0}`},
		{"org=acme&team=research", 25, `"total":{"start":"2026-11-21T16:00:00Z","end":"2026-11-22T16:30:00Z","allowed":1,"denied":0,"throttled":1,"failed":0}`},
		{"org=acme&by=team&bucket=total", 2, `"team":"ops","allowed":1,"denied":1,"throttled":0,"failed":0}`},
		{"org=acme&since=2026-11-22T15:00:00Z&until=2026-11-22T16:00:00Z", 1, `"allowed":1,"denied":0`},
		{"org=globex&bucket=total", 1, `"allowed":0,"denied":0`},
	} {
		status, text := ask(t, d, "GET /admin/decisions/outcomes", tt.query)
		if rows := strings.Count(text, `"start"`) - 1; status != 200 || rows != tt.rows || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d, %d rows, want %d with %s: %s", tt.query, status, rows, tt.rows, tt.want, text)
		}
	}
	for query, want := range map[string]string{
		"org=acme&bucket=5m&team=ops": "counted by the hour", "org=acme&bucket=5m&since=7d": "at most 24h", "org=acme&since=1h&until=2026-11-01": "before until", "org=initech": "initech", "": "org: is required",
	} {
		if status, text := ask(t, d, "GET /admin/decisions/outcomes", query); status < 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", query, status, text, want)
		}
	}
	server.SetError("LOADING")
	d.counter.addOutcome(&telemetry.Event{Org: "acme", Start: now.Add(-time.Minute)})
	if status, _ := ask(t, d, "GET /admin/decisions/outcomes", "org=acme"); status != 503 {
		t.Errorf("without the store: %d, want 503", status)
	}
	server.SetError("")
	if _, text := ask(t, d, "GET /admin/decisions/outcomes", "org=acme&bucket=total&since=1h"); !strings.Contains(text, `"allowed":3`) {
		t.Errorf("counts that could not be written are lost: %s", text)
	}
}

// Refusals are counted by the rate limit window that refused them, from the five minutes that contain the given time.
func TestThrottledRequestsAreCountedByWindow(t *testing.T) {
	t.Parallel()
	server, now := miniredis.RunT(t), time.Date(2026, 11, 22, 16, 30, 0, 0, time.UTC)
	d := counting(t, server, &now)
	view := filter.Serve("self.me", http.MethodGet, "/tollgate/me", nil)
	for _, x := range []struct {
		ago     time.Duration
		windows []string
	}{
		{0, []string{"key:ann minute", "key:ann hour"}},
		{23*time.Hour + 59*time.Minute, []string{"key:ann minute"}},
		{24*time.Hour + 6*time.Minute, []string{"key:ann minute", "key:bob minute"}},
		{time.Hour, nil},
	} {
		d.Ended(&filter.Exchange{
			Caller: &identity.Caller{Org: "acme"}, Route: &view.Route,
			Event: &telemetry.Event{Org: "acme", Method: http.MethodGet, Start: now.Add(-x.ago), Refusal: string(problem.RateLimited), Throttled: x.windows},
		})
	}
	got, err := d.Throttled(t.Context(), "acme", now.Add(-24*time.Hour))
	if diff := cmp.Diff(map[string]int64{"key:ann minute": 2, "key:ann hour": 1}, got); diff != "" || err != nil {
		t.Errorf("throttled (-want +got), %v:\n%s", err, diff)
	}
	if got, err := d.Throttled(t.Context(), "globex", now.Add(-24*time.Hour)); len(got) != 0 || err != nil {
		t.Errorf("another organisation: %v, %v", got, err)
	}
	server.SetError("LOADING")
	if _, err := d.Throttled(t.Context(), "acme", now); err == nil {
		t.Error("counts that cannot be read are reported as complete")
	}
}
