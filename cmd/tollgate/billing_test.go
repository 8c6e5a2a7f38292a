package main

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

func TestParts(t *testing.T) {
	now := time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		bucket, from, to string
		want             []part
	}{
		{"day", "", "", []part{{"", ""}}},
		{"hour", "2026-06-29T00:00:00Z", "", []part{{"2026-06-29T00:00:00Z", ""}}},
		{"hour", "2026-06-16T07:30:00Z", "", []part{{"2026-06-16T07:30:00Z", "2026-06-23T00:00:00Z"}, {"2026-06-23T00:00:00Z", "2026-06-30T00:00:00Z"}, {"2026-06-30T00:00:00Z", ""}}},
		{"day", "2026-01-01T00:00:00Z", "2026-04-02T00:00:00Z", []part{{"2026-01-01T00:00:00Z", "2026-04-02T00:00:00Z"}}},
		{"day", "2026-01-01T00:00:00Z", "2026-04-03T00:00:00Z", []part{{"2026-01-01T00:00:00Z", "2026-04-02T00:00:00Z"}, {"2026-04-02T00:00:00Z", "2026-04-03T00:00:00Z"}}},
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
	if got, want := b.String(), "\r0 of 2 parts of the range were answered\r1 of 2 parts of the range were answered\r\x1b[K"; got != want {
		t.Errorf("two parts: %q, want %q", got, want)
	}
}

// What is billed is divided as the ledger's costs are: of the bucket, else of the range.
func TestShares(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 6, n, 0, 0, 0, 0, time.UTC) }
	b := &billing{bucket: "day", grouping: "team", resource: "podId"}
	rows := []admin.Cost{
		{Start: day(1), Team: "research", USD: "3"}, {Start: day(1), Team: "ops", USD: "1"}, {Start: day(2), Team: "ops", USD: "4"},
	}
	for _, tt := range []struct {
		rows []admin.Cost
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
