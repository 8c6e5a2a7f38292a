package main

import (
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

func TestParts(t *testing.T) {
	now := time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		bucket, from, to string
		want             []part
	}{
		{"day", "", "", []part{{"", ""}}},
		{"hour", "2026-06-29T00:00:00Z", "", []part{{"2026-06-29T00:00:00Z", ""}}},
		{"hour", "2026-06-02T07:30:00Z", "", []part{{"2026-06-02T07:30:00Z", "2026-06-16T00:00:00Z"}, {"2026-06-16T00:00:00Z", "2026-06-30T00:00:00Z"}, {"2026-06-30T00:00:00Z", ""}}},
		{"day", "2026-01-01T00:00:00Z", "2027-01-02T00:00:00Z", []part{{"2026-01-01T00:00:00Z", "2027-01-02T00:00:00Z"}}},
		{"day", "2026-01-01T00:00:00Z", "2027-01-03T00:00:00Z", []part{{"2026-01-01T00:00:00Z", "2027-01-02T00:00:00Z"}, {"2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"}}},
		{"month", "2020-01-01T00:00:00Z", "", []part{{"2020-01-01T00:00:00Z", ""}}},
	} {
		b := &billing{bucket: tt.bucket, from: tt.from, to: tt.to}
		if diff := cmp.Diff(tt.want, b.parts(now), cmp.AllowUnexported(part{})); diff != "" {
			t.Errorf("%s from %q to %q (-want +got):\n%s", tt.bucket, tt.from, tt.to, diff)
		}
	}
}

func TestWriteProgress(t *testing.T) {
	var b strings.Builder
	writeProgress(&b, 0, 1)
	writeProgress(&b, 1, 1)
	if b.Len() > 0 {
		t.Errorf("one part: %q, want nothing", b.String())
	}
	for done := range 3 {
		writeProgress(&b, done, 2)
	}
	if got, want := b.String(), "\r0 of 2 parts of the range received\r1 of 2 parts of the range received\r\x1b[K"; got != want {
		t.Errorf("two parts: %q, want %q", got, want)
	}
}

// A question is repeated when the gateway says when, unless that is too long.
func TestBillingWaits(t *testing.T) {
	t.Setenv("TOLLGATE_KEY", "a key")
	for _, tt := range []struct {
		name, retryAfter string
		asked            int
		fails, says      string
	}{
		{"a full minute", "0", 3, "", "no room: waiting for 0s\nno room: waiting for 0s\n"},
		{"a full day", "40000", 1, "no room", ""},
		{"no word on when", "", 1, "no room", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked < 3 {
					w.Header()["Retry-After"] = []string{tt.retryAfter}
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = io.WriteString(w, `{"title":"Too Many Requests","detail":"no room"}`)
					return
				}
				_, _ = io.WriteString(w, `{"records":[{"startTime":"2026-06-01T00:00:00Z","totalAmount":1.5,"networkVolumeId":"v"}]}`)
			}))
			t.Cleanup(s.Close)
			var out, notes strings.Builder
			code := run(t.Context(), []string{"billing", "network-volume", "--gateway", s.URL, "-o", "csv"}, &out, &notes)
			if asked != tt.asked || (code != 0) != (tt.fails != "") || !strings.Contains(notes.String(), tt.fails) || tt.says != "" && notes.String() != tt.says {
				t.Errorf("asked %d times, exit %d, %q and %q; want %d, %q and %q", asked, code, out.String(), notes.String(), tt.asked, tt.says, tt.fails)
			}
			if tt.fails == "" && out.String() != "time,group,usd\n2026-06-01T00:00:00Z,,1.500000\n" {
				t.Errorf("answer: %q", out.String())
			}
		})
	}
}

// An unknown organisation is an error, also without bills to divide.
func TestBillingOfAnUnknownOrganisation(t *testing.T) {
	t.Setenv("TOLLGATE_KEY", "a key")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/admin/") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"detail":"unknown organisation \"nope\""}`)
			return
		}
		_, _ = io.WriteString(w, `{"records":[]}`)
	}))
	t.Cleanup(s.Close)
	for _, by := range []string{"--grouping=team", "--gpu-id=NVIDIA L4"} {
		code, stdout, stderr := tell(t, "billing", "pods", "--gateway", s.URL, "--admin", s.URL, "--org", "nope", by)
		if code != exitFailure || !strings.Contains(stderr, `unknown organisation "nope"`) {
			t.Errorf("%s: exit %d\n%s%s", by, code, stdout, stderr)
		}
	}
}

// Bills are divided as the ledger's costs are: of the bucket, else of the range.
func TestShares(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 6, n, 0, 0, 0, 0, time.UTC) }
	b := &billing{bucket: "day", grouping: "team", groups: map[string]string{"podId": "podId"}}
	rows := []money.Cost{
		{Start: day(1), CostGroup: money.CostGroup{Team: "research"}, USD: "3"},
		{Start: day(1), CostGroup: money.CostGroup{Team: "ops"}, USD: "1"},
		{Start: day(2), CostGroup: money.CostGroup{Team: "ops"}, USD: "4"},
	}
	for _, tt := range []struct {
		rows []money.Cost
		at   time.Time
		want map[string]*big.Rat
	}{
		{rows, day(1), map[string]*big.Rat{"research": big.NewRat(3, 4), "ops": big.NewRat(1, 4)}},
		{rows, day(2), map[string]*big.Rat{"ops": big.NewRat(1, 1)}},
		{rows, day(3), map[string]*big.Rat{"research": big.NewRat(3, 8), "ops": big.NewRat(5, 8)}},
		{nil, day(1), map[string]*big.Rat{"": big.NewRat(1, 1)}},
	} {
		if got, want := fmt.Sprint(b.shares(tt.rows, tt.at)), fmt.Sprint(tt.want); got != want {
			t.Errorf("at %s: %s, want %s", tt.at, got, want)
		}
	}
}
