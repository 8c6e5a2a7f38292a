package legacy

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfigValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
	for name, tt := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"brand":        {func(c *Config) { c.Brand = "a b" }, `brand: must be a letter followed by at most 31 letters and digits, got "a b"`},
		"deprecated":   {func(c *Config) { c.Deprecated = "soon" }, `deprecated: must be a date like 2026-11-15, got "soon"`},
		"sunset":       {func(c *Config) { c.Sunset = "later" }, `sunset: must be a date like 2026-11-15, got "later"`},
		"early sunset": {func(c *Config) { c.Sunset = "2026-01-01" }, "sunset: must not be before deprecated (2026-11-15), got 2026-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			if err := cfg.Validate(); err == nil || err.Error() != tt.want {
				t.Errorf("Validate = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	cfg := DefaultConfig()
	if diff := cmp.Diff(http.Header{"Deprecation": {"@1794700800"}}, cfg.Header()); diff != "" {
		t.Errorf("by default (-want +got):\n%s", diff)
	}
	cfg.Sunset = "2027-03-01"
	if got, want := cfg.Header().Get("Sunset"), "Mon, 01 Mar 2027 00:00:00 GMT"; got != want {
		t.Errorf("Sunset %q, want %q", got, want)
	}
}
