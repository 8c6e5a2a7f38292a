package parity

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// Permits that are drawn while the doors stay open at the end are given back: the count after a
// gateway has gone is that of its admitted calls.
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
	snap, err := store.Snapshot(t.Context(), "acme")
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

// A stop in the middle of a pass ends within timeouts.drain and a second, whichever answer the
// pass waits for.
func TestAStopInAPassIsBounded(t *testing.T) {
	const drain = 2 * time.Second
	d := openDoor(t, "http", budgeted("{gpus: 1}"), func(d *door) {
		d.text = strings.Replace(d.text, "limits: {timeout: 10s}", "limits: {timeout: 10s}\ntimeouts: {drain: 2s}", 1)
	})
	d.platform.AddFault(platform.Fault{Operation: "listPods", Kind: platform.FaultHang})
	end := run(t, d)
	world.Until(t, "a pass to list pods", func() bool {
		return slices.ContainsFunc(d.platform.Calls(), func(c platform.Call) bool { return c.Operation == "listPods" })
	})
	asked := make(chan struct{})
	go func() { // a create that waits for the ledger to be rebuilt
		defer close(asked)
		if conn, err := net.Dial("tcp", d.addr); err == nil {
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, request("POST", "/v2/pods", "key_research", podL4, "Connection: close"))
			_, _ = io.ReadAll(conn)
		}
	}()
	world.Until(t, "another", func() bool { return strings.Count(strings.Join(platformCalls(d), "\n"), "/v2/pods") > 1 })
	began := time.Now()
	end()
	if took := time.Since(began); took > drain+time.Second {
		t.Errorf("the stop took %s, want at most %s and a second", took, drain)
	}
	<-asked
}
