package alerts_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
)

// A report is sent once a week for the organisation and each team, by whichever of two gateways is first; a refused report is tried again, and
// one that is too late is left.
func TestWeeklyReportsAreSentOnce(t *testing.T) {
	t.Parallel()
	status, got := http.StatusBadRequest, []string(nil)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if status == http.StatusOK {
			got = append(got, string(text))
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	dir := t.TempDir()
	at := time.Date(2026, 11, 23, 6, 59, 0, 0, time.UTC) // a Monday
	o := settings.Org{ID: "acme", Teams: []settings.Team{{ID: "research"}}, Alerts: settings.Alerts{
		Report: settings.Report{Weekday: "mon", Hour: 7},
		Webhook: webhook.Config{
			URL: egress.UnrestrictedURL(receiver.URL), Format: webhook.FormatSlack, Secret: strictyaml.NewSecret("a secret of at least 24 bytes"), Networks: []egress.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}},
		},
	}}
	a := newAlerts(t, o, notices{})
	cfg := a.Config()
	cfg.Spend.Reports = dir
	a.Current = view.New(func() time.Time { return at })
	a.Set(&view.View{Config: cfg})
	weekly := func(_ context.Context, org, team string, to time.Time) (*alerts.Weekly, error) {
		return &alerts.Weekly{Org: org, Team: team, From: to.AddDate(0, 0, -7), To: to, USD: "12.5", Before: "10", MostExpensive: []alerts.Share{{Name: "<train>", USD: "9"}}}, nil
	}
	other := newAlerts(t, o, notices{})
	other.Current, other.Sent = a.Current, a.Sent
	look := func() (n int) {
		before := len(got)
		for range 2 {
			a.Reports(t.Context(), weekly)
			other.Reports(t.Context(), weekly)
		}
		return len(got) - before
	}
	if n := look(); n != 0 {
		t.Errorf("a minute before its hour %d reports were sent", n)
	}
	at = at.Add(time.Minute)
	if n := look(); n != 0 {
		t.Errorf("%d reports were taken by a receiver that refuses", n)
	}
	status = http.StatusOK
	if n := look(); n != 2 {
		t.Errorf("%d reports were sent, want that of the organisation and that of the team", n)
	}
	want := `*acme: 2026-11-16 to 2026-11-22*\nCost: 12.50 USD (previous week 10.00)\nMost expensive: &lt;train&gt; 9.00`
	if !slices.ContainsFunc(got, func(text string) bool {
		return strings.Contains(strings.NewReplacer("\\u0026", "&").Replace(text), want)
	}) {
		t.Errorf("sent %q, want %q in one", got, want)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	if diff := cmp.Diff([]string{"acme__2026-11-23.json", "acme_research_2026-11-23.json"}, names); diff != "" || err != nil {
		t.Errorf("files (%v, -want +got):\n%s", err, diff)
	}
	var w alerts.Weekly
	if text, err := os.ReadFile(files[1]); err != nil || json.Unmarshal(text, &w) != nil || w.Team != "research" {
		t.Errorf("the file of the team: %s (%v)", text, err)
	}
	at = at.Add(7*24*time.Hour + 72*time.Hour + time.Minute)
	if n := look(); n != 0 {
		t.Errorf("%d reports were sent more than three days late", n)
	}
	at = at.Add(-2 * time.Minute)
	if n := look(); n != 2 {
		t.Errorf("%d reports were sent almost three days late, want both", n)
	}
	at = at.Add(7 * 24 * time.Hour)
	a.Reports(t.Context(), func(context.Context, string, string, time.Time) (*alerts.Weekly, error) {
		return nil, errors.New("away")
	})
	if n := look(); n != 2 {
		t.Errorf("%d reports were sent after one gateway could not make them, want both", n)
	}
}

func TestReportsAreDue(t *testing.T) {
	t.Parallel()
	for now, want := range map[string]string{
		"2026-11-22T23:59:59Z": "2026-11-16T07:00:00Z", "2026-11-23T06:59:59Z": "2026-11-16T07:00:00Z", "2026-11-23T07:00:00Z": "2026-11-23T07:00:00Z", "2026-11-28T12:00:00+01:00": "2026-11-23T07:00:00Z",
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := (settings.Report{Weekday: "mon", Hour: 7}).Due(at).Format(time.RFC3339); got != want {
			t.Errorf("at %s due since %s, want %s", now, got, want)
		}
	}
	if due := (settings.Report{}).Due(time.Now()); !due.IsZero() {
		t.Errorf("without a day due since %s", due)
	}
}
