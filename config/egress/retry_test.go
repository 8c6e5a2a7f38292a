package egress_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-1": 0, "1.5": 0, "soon": 0, "4000000000": time.Hour, "99999999999999999999": 0,
		"Sat, 21 Nov 2026 10:00:30 GMT": 30 * time.Second, "Sat, 21 Nov 2026 09:00:00 GMT": 0, "Sun, 22 Nov 2026 10:00:00 GMT": time.Hour,
	} {
		if got := egress.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
