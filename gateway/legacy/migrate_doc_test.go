package legacy_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
)

// The configuration that docs/migrate.md shows is valid, and has the effect that the page describes.
func TestTheBrownoutsOfTheManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/migrate.md shows no configuration")
	}
	l, err := config.Parse("migrate.md", []byte(text), config.Sources{Env: func(string) (string, bool) { return "redis://127.0.0.1:6379", true }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	schedule := legacy.NewSchedule(l.Config.Orgs[0].Brownouts, "v1")
	for at, want := range map[string]bool{
		"2026-12-01T09:59:59Z": false,
		"2026-12-01T10:00:00Z": true,
		"2026-12-02T10:15:00Z": false, // a Wednesday, but before it recurs
		"2027-01-11T10:15:00Z": true,  // a Monday
		"2027-01-12T10:15:00Z": false,
		"2027-02-08T10:15:00Z": false, // a Monday, and over
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, got := schedule.Active(now); got != want {
			t.Errorf("at %s browned out = %t, want %t", at, got, want)
		}
	}
}
