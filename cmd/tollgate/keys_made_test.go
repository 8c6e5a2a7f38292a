package main

import (
	"testing"
	"time"
)

// The expiry is a date, whose day begins in UTC, a time or a duration.
func TestExpiryOfANewKey(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 5, time.UTC)
	for text, want := range map[string]string{
		"2027-01-01":                `{"expires":"2027-01-01T00:00:00Z","id":"ci"}`,
		"2027-01-01T01:00:00+01:00": `{"expires":"2027-01-01T00:00:00Z","id":"ci"}`,
		"2d":                        `{"expires":"2026-12-01T12:00:00Z","id":"ci"}`,
		"":                          `{"id":"ci"}`,
		"2027-02-30":                "",
		"soon":                      "",
	} {
		if got, err := (&keySpec{expires: text}).spec("ci", now); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %s (%v), want %s", text, got, err, want)
		}
	}
}
