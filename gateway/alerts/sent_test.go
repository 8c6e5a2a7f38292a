package alerts_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// notices are those of one organisation.
type notices map[string]string

func (n notices) Noticed(context.Context, string) (map[string]string, error) { return n, nil }

func (n notices) Notice(_ context.Context, _, name, value string) error {
	n[name] = value
	return nil
}

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// newAlerts returns alerts over a store of their own.
func newAlerts(t *testing.T, o settings.Org, n notices) *alerts.Alerts {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(now)
	client := redistest.Once(t, server.Addr())
	current := view.New(func() time.Time { return now })
	current.Set(&view.View{Config: &settings.Config{Orgs: []settings.Org{o}}})
	return &alerts.Alerts{
		Current: current, Logger: slog.New(slog.DiscardHandler),
		Go: func(f func()) { f() }, Meter: noop.Meter{}, SnoozeLinks: money.SnoozeLinks{Current: current},
		Approvals: approval.New(store.NewBatchClient(client), "approvals:"), Notices: n, Sent: alerts.NewSentLog(client, ""),
	}
}

// An alert is kept with its end. One that fails again and again, and passes at last, is listed once.
func TestToldAlertsAreKept(t *testing.T) {
	t.Parallel()
	status := http.StatusBadRequest
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(receiver.Close)
	o := settings.Org{ID: "acme", Alerts: settings.Alerts{Webhook: webhook.Config{
		URL: egress.UnrestrictedURL(receiver.URL), Secret: strictyaml.NewSecret("a secret of at least 24 bytes"), Networks: []egress.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}},
	}}}
	a := newAlerts(t, o, notices{})
	lost := &money.Loss{Lost: "all", At: now}
	ends := func() (out []string) {
		list, err := a.List(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		for _, alert := range list {
			out = append(out, alert.Kind+" "+map[bool]string{true: "delivered", false: alert.Failure}[alert.Delivered])
		}
		return out
	}
	for range 3 {
		a.LedgerLost(t.Context(), "acme", lost)
	}
	if diff := cmp.Diff([]string{"ledger.lost webhook: receiver responded with status 400"}, ends()); diff != "" {
		t.Errorf("while the receiver refuses (-want +got):\n%s", diff)
	}
	status = http.StatusOK
	a.LedgerLost(t.Context(), "acme", lost)
	if diff := cmp.Diff([]string{"ledger.lost delivered"}, ends()); diff != "" {
		t.Errorf("after it has taken it (-want +got):\n%s", diff)
	}
	list, err := a.Sent.List(t.Context(), "acme")
	if err != nil || len(list) != 2 {
		t.Errorf("%d entries are kept (%v), want one failure and its end", len(list), err)
	}
	var kept alerts.Alert
	if err := json.Unmarshal([]byte(list[0]), &kept); err != nil || !json.Valid(kept.Data) {
		t.Errorf("kept: %s (%v)", list[0], err)
	}
}

// All exceptions with an end are in one list, the next end first; ended ones are not.
func TestExceptionsWithTheirEnds(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) time.Time { return now.Add(d) }
	o := settings.Org{
		ID:        "acme",
		Policies:  policyconfig.Config{Exceptions: []policies.Exception{{ID: "x1", Policy: "gpu_count", Teams: []string{"research"}, Until: in(3 * time.Hour), GrantedBy: "ada"}, {ID: "x0", Policy: "disk", Keys: []string{"ann"}, Until: now}}},
		Brownouts: []settings.Brownout{{Dialects: []settings.Dialect{"v1"}, From: now, Until: in(4 * time.Hour)}},
	}
	a := newAlerts(t, o, notices{"keep:pod-1": in(2 * time.Hour).Format(time.RFC3339), "keep:pod-0": in(-time.Hour).Format(time.RFC3339)})
	grant := approval.Record{ID: "ap-1", State: approval.Granted, Key: "ann", Team: "research", Until: in(time.Hour), Refusals: []approval.Refusal{{By: "budget team research per_hour"}}, Answer: &approval.Answer{By: "bob", At: now}}
	if _, _, err := a.Approvals.Swap(t.Context(), "acme", approval.Entry{ID: "ap-1"}, &grant); err != nil {
		t.Fatal(err)
	}
	list, err := a.Exceptions(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range list {
		got = append(got, x.Kind+" "+x.About+" for "+x.For+" by "+x.By+" until "+x.Until.Format("15:04"))
	}
	want := []string{
		"approval budget team research per_hour for research/ann by bob until 13:00", "snooze idle for  by  until 14:00",
		"policy gpu_count for team research by ada until 15:00", "brownout v1 for  by  until 16:00",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exceptions (-want +got):\n%s", diff)
	}
}
