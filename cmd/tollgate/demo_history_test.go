package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// The demo begins with a week: each hour of spend has its resource and its rate, and there are decisions, requests for approval and changes.
func TestHistoryOfTheDemo(t *testing.T) {
	began := make(chan demoAddresses, 1)
	f := demoFlags{listen: "127.0.0.1:0", admin: "127.0.0.1:0", history: true, started: began}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- demo(ctx, f, io.Discard, io.Discard) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the demo ended with %v", err)
		}
	}()
	address, client := (<-began).admin, new(http.Client)
	defer client.CloseIdleConnections()
	read := func(target string, answer any) { // waits until the demo serves
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if err := json.NewDecoder(res.Body).Decode(answer); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", target, res.StatusCode, err)
		}
	}
	var costs struct {
		Total string
		Rows  []struct {
			Start, End          time.Time
			Resource, Team, GPU string
			USD                 string
		}
	}
	read("/admin/spend/history?org=acme&by=resource,team&bucket=hour&limit=10000&from="+time.Now().AddDate(0, 0, -8).UTC().Format(time.DateOnly), &costs)
	sum, days, teams := 0.0, make(map[string]bool), make(map[string]bool)
	for _, r := range costs.Rows {
		usd, err := strconv.ParseFloat(r.USD, 64)
		if err != nil || usd <= 0 || usd > 4 || r.Resource == "" || r.GPU == "" || r.End.Sub(r.Start) != time.Hour || r.End.After(time.Now().Add(time.Hour)) {
			t.Errorf("an hour that cannot be: %+v", r)
		}
		sum, days[r.Start.Format(time.DateOnly)], teams[r.Team] = sum+usd, true, true
	}
	if total, err := strconv.ParseFloat(costs.Total, 64); err != nil || math.Abs(total-sum) > 0.001 || len(days) < 7 || len(teams) != 3 {
		t.Errorf("%d hours cost %v in sum, the total is %s; %d days, teams %v", len(costs.Rows), sum, costs.Total, len(days), teams)
	}
	var decisions struct{ Decisions []struct{ Refusal string } }
	read("/admin/decisions?org=acme&refused=true", &decisions)
	var approvals struct{ Approvals []struct{ State string } }
	read("/admin/approvals?org=acme", &approvals)
	var changes struct{ Changes []any }
	read("/admin/audit/log?org=acme", &changes)
	if len(decisions.Decisions) < 10 || len(approvals.Approvals) == 0 || len(changes.Changes) == 0 {
		t.Errorf("%d refusals, %d requests for approval, %d changes", len(decisions.Decisions), len(approvals.Approvals), len(changes.Changes))
	}
}
