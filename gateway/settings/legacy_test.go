package settings_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

func TestNameOfTheAddress(t *testing.T) {
	for host, want := range map[string]string{
		"rest.acme.io": "Acme", "acme.io": "Acme", "api.acme-cloud.co.uk": "AcmeCloud", "rest.ACME.io": "Acme",
		"127.0.0.1": "", "::1": "", "localhost": "", "platform": "", "platform.svc.cluster.local": "", "io": "", "": "", "api.7seas.io": "",
	} {
		if got := (&settings.Legacy{Host: host}).KnownName(); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
	if got := (&settings.Legacy{Brand: "Globex", Host: "rest.acme.io"}).KnownName(); got != "Globex" {
		t.Errorf("beside the operator's: %q, want Globex", got)
	}
}

func TestLegacyValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*settings.Legacy)
		want   string
	}{
		"brand":        {func(c *settings.Legacy) { c.Brand = "a b" }, `brand: must be a letter followed by at most 31 letters and digits, got "a b"`},
		"deprecated":   {func(c *settings.Legacy) { c.Deprecated = "soon" }, `deprecated: must be a date such as 2026-11-15, got "soon"`},
		"sunset":       {func(c *settings.Legacy) { c.Sunset = "later" }, `sunset: must be a date such as 2026-11-15, got "later"`},
		"early sunset": {func(c *settings.Legacy) { c.Sunset = "2026-01-01" }, "sunset: must not be before deprecated (2026-11-15), got 2026-01-01"},
		"defaults":     {func(*settings.Legacy) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := settings.Default().Legacy
			tt.change(&cfg)
			wantFault(t, cfg.Validate(), tt.want)
		})
	}
}

func TestDialectsValidate(t *testing.T) {
	cfg := settings.Default()
	wantFault(t, cfg.V1.Validate(), "")
	wantFault(t, cfg.GraphQL.Validate(), "")
	wantFault(t, settings.V1{}.Validate(), "budget: must be between 1s and 29s, got 0s\nvolume_budget: must be between 1s and budget (0s), got 0s")
	wantFault(t, settings.GraphQL{CreateTimeout: time.Minute}.Validate(), "timeout: must be greater than 0, got 0s")
}

// Settings of the legacy APIs are faults of a gateway that has no feature for them.
func TestWithoutLegacy(t *testing.T) {
	const text = ": must be removed: only the legacy APIs (v1 and GraphQL) use this setting, and tollgate was built without them"
	wantFault(t, (&settings.Config{LegacySettings: []string{"v1", "orgs[0].brownouts"}}).WithoutLegacy(), "v1"+text+"\norgs[0].brownouts"+text)
	wantFault(t, new(settings.Config).WithoutLegacy(), "")
}

// wantFault checks the text of an error, "" for none.
func wantFault(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("Validate = %q, want %q", got, want)
	}
}
