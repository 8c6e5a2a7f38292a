package parity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/world"
)

// rotating makes key_tiny one that is being replaced: until a minute from the start
// the old secret is accepted, the new one from half a minute on.
func rotating(d *door) {
	d.text = strings.Replace(d.text, "sha256: SHA256(key_tiny)", fmt.Sprintf("digests: [{sha256: SHA256(key_tiny), not_after: %s}, {sha256: SHA256(key_tiny_next), not_before: %s}]",
		start.Add(time.Minute).Format(time.RFC3339), start.Add(30*time.Second).Format(time.RFC3339)), 1)
}

// A rotation with overlap: either secret is the same caller, with one quota.
func TestRotationKeepsTheQuota(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		ask := func(key string, want int) {
			t.Helper()
			if a := d.ask(t, request("GET", "/v2/pods", key, "")); a.Status != want {
				t.Errorf("%s after %v with %s: %d %s, want %d", d.name, d.clock.Now().Sub(start), key, a.Status, a.Body, want)
			}
		}
		ask("key_tiny", 200)
		ask("key_tiny_next", 401)
		d.advance(40 * time.Second) // another minute begins
		for _, key := range []string{"key_tiny", "key_tiny_next", "key_tiny", "key_tiny_next", "key_tiny"} {
			ask(key, 200)
		}
		ask("key_tiny", 429)
		ask("key_tiny_next", 429)
		d.advance(time.Minute)
		ask("key_tiny", 401)
		ask("key_tiny_next", 200)
		world.Until(t, "the line that says why", func() bool {
			return strings.Contains(d.logs.String(), "key key_tiny of acme is accepted until "+start.Add(time.Minute).Format(time.RFC3339))
		})
	}, rotating)
}

// A stream ends with the secret that opened it.
func TestStreamsEndWithTheirKey(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http")
	created := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
	d.advance(10 * time.Second)
	next := load(t, d.text, d.upstream)
	next.Orgs[0].Keys[0].Digests = append(next.Orgs[0].Keys[0].Accepted(), next.Orgs[0].Keys[1].Accepted()...)
	next.Orgs[0].Keys = append(next.Orgs[0].Keys[:1], next.Orgs[0].Keys[2:]...)
	next.Orgs[0].Keys[0].Digest = identity.Digest{}
	next.Orgs[0].Keys[0].Digests[0].NotAfter = d.clock.Now().Add(500 * time.Millisecond)
	if err := d.gateway.Swap(next); err != nil {
		t.Fatal(err)
	}
	lines, stop := d.stream(t, "/v2/pods/"+fmt.Sprint(field(t, created.Body, "id"))+"/logs", "key_research")
	defer stop()
	for range lines { // until it is cut; without that, until the test times out
	}
	world.Until(t, "the event", func() bool { return strings.Contains(d.logs.String(), `"outcome":"terminated"`) })
}

// The file can shorten the time of a key whose streams are open: they end with it.
func TestOpenStreamsEndWhenTheirKeyExpires(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http")
	created := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
	d.advance(10 * time.Second)
	lines, stop := d.stream(t, "/v2/pods/"+fmt.Sprint(field(t, created.Body, "id"))+"/logs", "key_research")
	defer stop()
	<-lines // it flows
	next := load(t, d.text, d.upstream)
	next.Orgs[0].Keys[0].Expires = d.clock.Now().Add(500 * time.Millisecond)
	if err := d.gateway.Swap(next); err != nil {
		t.Fatal(err)
	}
	for range lines { // until it is cut; without that, until the test times out
	}
	world.Until(t, "the event", func() bool { return strings.Contains(d.logs.String(), `"outcome":"terminated"`) })
}

// A key with addresses is an unknown one from elsewhere; the log has the reason.
func TestAddressesOfKeys(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		here, away, unknown := d.ask(t, request("GET", "/v2/pods", "key_tiny", "")), d.ask(t, request("GET", "/v2/pods", "key_research", "")), d.ask(t, request("GET", "/v2/pods", "key_nowhere", ""))
		if here.Status != 200 || away.Status != 401 || comparable(away).Body != comparable(unknown).Body {
			t.Errorf("from here: %d; not from here: %d %s; an unknown key: %s; want 200, 401 and the same", here.Status, away.Status, away.Body, unknown.Body)
		}
		world.Until(t, "the line that says why", func() bool {
			return strings.Contains(d.logs.String(), `key key_research of acme is not accepted from \"127.0.0.1\"`)
		})
	}, func(d *door) {
		d.text = strings.Replace(d.text, "sha256: SHA256(key_tiny)", "addresses: [127.0.0.0/8], sha256: SHA256(key_tiny)", 1)
		d.text = strings.Replace(d.text, "sha256: SHA256(key_research)", "addresses: [10.0.0.0/8], sha256: SHA256(key_research)", 1)
	})
}
