package parity

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Operators see the keys of the configuration beside those made at run time; a lead sees
// only what it can change.
func TestKeysOfTheConfigurationAreListed(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.make(t, `{"id":"made","team":"research"}`)
		states := func(body, member string) map[string]string {
			t.Helper()
			var answer struct{ Keys []settings.KeyRecord }
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			by := make(map[string]string)
			for _, k := range answer.Keys {
				if by[k.ID] = k.State; member == "by" {
					by[k.ID] = k.By
				}
			}
			return by
		}
		want := map[string]string{
			"key_research": "in force", "key_platform": "in force", "key_tiny": "expired", "key_exempt": "not in force: before 2026-12-01T00:00:00Z", "made": "in force",
		}
		_, body := d.operate(t, "GET", "", url.Values{"org": {"acme"}})
		if diff := cmp.Diff(want, states(body, "state")); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		if by := states(body, "by"); by["made"] != "unauthenticated" || by["key_research"] != "configuration" {
			t.Errorf("made by %v, want key_research of the configuration", by)
		}
		a := d.ask(t, request("GET", "/tollgate/keys", "key_research", ""))
		_, configured, _ := strings.Cut(a.Body, `"id":"key_`)
		team := states(a.Body, "state")
		if team["made"] != "in force" || team["key_research"] != "in force" || team["key_platform"] != "" || strings.Contains(configured, "sha256") {
			t.Errorf("a lead: %s, want the keys of the team, without digests of the configuration", a.Body)
		}
		if status, body := d.operate(t, "GET", "", url.Values{"org": {"none"}}); status != 404 {
			t.Errorf("no organisation: %d %s, want 404", status, body)
		}
	}, func(d *door) {
		d.text = strings.Replace(d.text, "SHA256(key_research), roles: [operator]", "SHA256(key_research), roles: [operator, lead]", 1)
		d.text = strings.Replace(d.text, "SHA256(key_tiny)", "SHA256(key_tiny), expires: "+start.Format(time.RFC3339), 1)
		d.text = strings.Replace(d.text, "sha256: SHA256(key_exempt)", "digests: [{sha256: SHA256(key_exempt), not_before: 2026-12-01T00:00:00Z}]", 1)
	})
}
