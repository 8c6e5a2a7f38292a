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
		"brand":        {func(c *Config) { c.Brand = "a b" }, `brand: "a b" is not a name of letters and digits`},
		"deprecated":   {func(c *Config) { c.Deprecated = "soon" }, `deprecated: "soon" is not a date like 2026-11-15`},
		"sunset":       {func(c *Config) { c.Sunset = "later" }, `sunset: "later" is not a date like 2026-11-15`},
		"early sunset": {func(c *Config) { c.Sunset = "2026-01-01" }, "sunset: 2026-01-01 is before deprecated (2026-11-15), which RFC 9745 forbids"},
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
