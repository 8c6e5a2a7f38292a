package legacy

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestName(t *testing.T) {
	for want, c := range map[string]Config{"Platform": {}, "Acme": {Derived: "Acme"}, "Globex": {Brand: "Globex", Derived: "Acme"}} {
		if got := c.Name(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
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
