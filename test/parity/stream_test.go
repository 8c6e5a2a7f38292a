package parity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// An open log stream ends when what allowed it is withdrawn, and only then. In
// the Envoy door the stream is Envoy's own, so this is the HTTP door's promise.
func TestWithdrawnStreamsAreCut(t *testing.T) {
	newKey := func(c *settings.Config, org int) { c.Orgs[org].Keys[0].Digest = identity.DigestOf("another_key") }
	for name, tc := range map[string]struct {
		change func(t *testing.T, d *door, c *settings.Config)
		cut    bool
	}{
		"the key is removed": {func(_ *testing.T, _ *door, c *settings.Config) { c.Orgs[0].Keys = c.Orgs[0].Keys[1:] }, true},
		"the key is another": {func(_ *testing.T, _ *door, c *settings.Config) { newKey(c, 0) }, true},
		"the key changes hands": {func(_ *testing.T, _ *door, c *settings.Config) {
			c.Orgs[0].Keys[0].Team = "platform"
		}, true},
		"a role is taken": {func(_ *testing.T, _ *door, c *settings.Config) { c.Orgs[0].Keys[0].Roles = nil }, true},
		"other policies": {func(t *testing.T, d *door, c *settings.Config) {
			*c = reconfigured(t, d, only("NVIDIA L4"))
		}, true},
		"nothing of it":              {func(*testing.T, *door, *settings.Config) {}, false},
		"another organisation's key": {func(_ *testing.T, _ *door, c *settings.Config) { newKey(c, 1) }, false},
		"a quota":                    {func(_ *testing.T, _ *door, c *settings.Config) { c.Orgs[0].Keys[0].Limit.Minute = 7 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDoor(t, "http")
			created := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
			id := fmt.Sprint(field(t, created.Body, "id"))
			d.advance(10 * time.Second)
			lines, stop := d.stream(t, "/v2/pods/"+id+"/logs", "key_research")
			defer stop()
			<-lines // it flows

			next := load(t, d.text, d.upstream)
			tc.change(t, d, &next)
			if err := d.gateway.Swap(next); err != nil {
				t.Fatal(err)
			}
			if !tc.cut {
				d.advance(time.Minute)
				for line := range lines {
					if strings.Contains(line, `"ts":"2026-11-21T10:01:`) {
						return // written after the change
					}
				}
				t.Fatal("the stream was cut")
			}
			for range lines { // until it is cut; without that, until the test times out
			}
			world.Until(t, "the event", func() bool { return strings.Contains(d.logs.String(), `"outcome":"terminated"`) })
		})
	}
}

// A stream that is withdrawn before its response begins is refused, and the platform is not blamed.
func TestWithdrawnBeforeTheResponse(t *testing.T) {
	d := openDoor(t, "http")
	created := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
	d.platform.AddFault(platform.Fault{Operation: "getPodLogs", Kind: platform.FaultHang})
	before := len(d.platform.Calls())
	answered := make(chan answer, 1)
	go func() {
		answered <- d.ask(t, request("GET", "/v2/pods/"+fmt.Sprint(field(t, created.Body, "id"))+"/logs", "key_research", ""))
	}()
	world.Until(t, "the platform has the call", func() bool { return len(d.platform.Calls()) > before })
	next := load(t, d.text, d.upstream)
	next.Orgs[0].Keys = next.Orgs[0].Keys[1:]
	if err := d.gateway.Swap(next); err != nil {
		t.Fatal(err)
	}
	if a := <-answered; a.Status != 403 || !strings.Contains(a.Body, "was withdrawn") {
		t.Errorf("answer %d %s, want 403 for the withdrawn permission", a.Status, a.Body)
	}
}
