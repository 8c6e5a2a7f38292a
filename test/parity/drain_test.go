package parity

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/world"
)

// Permits that are drawn while the doors stay open at the end are given back: what
// is counted after a gateway has gone is what it admitted.
func TestPermitsDrawnAtTheEndAreReturned(t *testing.T) {
	d := openDoor(t, "http", func(d *door) {
		d.text = strings.Replace(configuration, "limits: {timeout: 10s}", "limits: {timeout: 10s, mode: leased}\ntimeouts: {notice: 400ms}", 1)
		d.text = strings.ReplaceAll(d.text, "limits: {minute: 600, hour: 3000, day: 50000}", "limits: {day: 50000}")
	})
	end := run(t, d)
	admitted := int64(0)
	ask := func() bool {
		conn, err := net.Dial("tcp", d.addr)
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close() }()
		if _, err := io.WriteString(conn, request("GET", "/v2/account/ssh-keys", "key_research", "", "Connection: close")); err != nil {
			return false
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
			return false
		}
		admitted++
		return true
	}
	if !ask() {
		t.Fatal("the gateway does not serve")
	}
	before := admitted
	var ending sync.WaitGroup
	ending.Go(end)
	for ask() {
	}
	ending.Wait()
	if admitted-before < 10 {
		t.Fatalf("%d calls were admitted at the end: too few for permits to be drawn", admitted-before)
	}
	store, err := redisstore.New(world.Redis(t, d.redis.Addr()), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := store.Show(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range snap.Scopes {
		if got := scope.State.Count[2]; got != admitted {
			t.Errorf("%s counts %d, admitted were %d", scope.Ref, got, admitted)
		}
	}
	if len(snap.Scopes) == 0 {
		t.Error("nothing was counted")
	}
}
