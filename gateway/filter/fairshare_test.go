package filter

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// usedUp are shares of which nothing is left.
type usedUp struct{ Shares }

// Admit implements Shares.
func (usedUp) Admit(string, string, int64) (ok bool, retryAfter time.Duration) {
	return false, time.Hour
}

// TestFairShareAdmitsStops: a team without a share can still end what costs money.
func TestFairShareAdmitsStops(t *testing.T) {
	for _, tt := range []struct {
		operation, action string
		refused           bool
	}{
		{"deletePod", "", false},
		{"podAction", "stop", false},
		{"podAction", "start", true},
		{"getPod", "", true},
	} {
		ex := &Exchange{
			Operation: &schema.Operation{ID: tt.operation}, Caller: &identity.Caller{Org: "acme"}, Tenant: new(Tenant),
			Ports: &Ports{Shares: usedUp{}},
		}
		ex.Body.Doc = map[string]any{"action": tt.action}
		if err := (FairShare{}).Request(t.Context(), ex); (err != nil) != tt.refused {
			t.Errorf("%s %s: %v", tt.operation, tt.action, err)
		}
	}
}
