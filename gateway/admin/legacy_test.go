package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// census knows one caller, or fails.
type census struct{ err error }

func (c census) Calls(_ context.Context, org string) ([]admin.LegacyCall, error) {
	switch {
	case c.err != nil:
		return nil, c.err
	case org != "acme" && org != "":
		return nil, row.ErrNoOrg
	}
	return []admin.LegacyCall{{
		Org: "acme", Key: "ann", Dialect: "v1", Operation: "createPod", Agent: "launcher/1", Count: 2, First: time.Unix(1, 0).UTC(), Last: time.Unix(2, 0).UTC(),
		Statuses: map[string]int64{"2xx": 2}, V2: []string{"createPod"}, Lost: map[string]int64{"minUploadMbps": 1},
	}}, nil
}

func (census) Brownouts(string) []admin.Brownout {
	return []admin.Brownout{{Org: "acme", Dialect: "v1", From: time.Unix(3, 0).UTC(), Until: time.Unix(4, 0).UTC(), Now: true}}
}

func TestLegacyCalls(t *testing.T) {
	d := deps("operators-only")
	d.Legacy = census{}
	for target, want := range map[string]int{
		"/admin/legacy": 200, "/admin/legacy?org=acme": 200, "/admin/legacy?org=nobody": 404,
	} {
		if w := get(d, target, "Bearer operators-only"); w.Code != want {
			t.Errorf("%s: %d %s, want %d", target, w.Code, w.Body, want)
		}
	}
	if w := get(d, "/admin/legacy", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without the token: %d, want 401", w.Code)
	}
	var got any
	if err := json.Unmarshal(get(d, "/admin/legacy?org=acme", "Bearer operators-only").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"calls": []any{map[string]any{
		"org": "acme", "key": "ann", "dialect": "v1", "operation": "createPod", "agent": "launcher/1", "count": 2.0,
		"first": "1970-01-01T00:00:01Z", "last": "1970-01-01T00:00:02Z", "statuses": map[string]any{"2xx": 2.0},
		"v2": []any{"createPod"}, "lost": map[string]any{"minUploadMbps": 1.0},
	}}, "brownouts": []any{map[string]any{"org": "acme", "dialect": "v1", "from": "1970-01-01T00:00:03Z", "until": "1970-01-01T00:00:04Z", "now": true}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	d.Legacy = census{errors.New("dial 10.0.0.1: refused")}
	if w := get(d, "/admin/legacy", "Bearer operators-only"); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "10.0.0.1") {
		t.Errorf("without the store: %d %s, want 503 and no addresses", w.Code, w.Body)
	}
}
