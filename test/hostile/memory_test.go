package hostile

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	strangers     = 800
	strangersBody = 95_000
	// strangersMemory is what connections and all else of them may take: less than a
	// third of their bodies.
	strangersMemory = 24 << 20
)

// TestBodiesOfStrangersTakeNoMemory: an unknown caller is refused before the body is read,
// however much of it has come, and known ones get through.
func TestBodiesOfStrangersTakeNoMemory(t *testing.T) {
	s := open(t)
	if grown := s.crowd(t, "/v2/pods", "unauthorized", strangers); grown > strangersMemory {
		t.Errorf("%d strangers with %d bytes each take %d bytes, want at most %d", strangers, strangersBody, grown, strangersMemory)
	}
}

// TestBodiesWithoutAKeyAreBounded: where callers without a key are served, their
// bodies are read, within a bound in sum.
func TestBodiesWithoutAKeyAreBounded(t *testing.T) {
	const bound = 16 << 20
	s := open(t, keyless(), bodyWithin(2*time.Second))
	// Bodies that time out make room: a slow machine refuses fewer.
	if grown := s.crowd(t, "/graphql", "overloaded", strangers/10); grown > strangersMemory+bound {
		t.Errorf("%d callers without a key with %d bytes each take %d bytes, want at most %d", strangers, strangersBody, grown, strangersMemory+bound)
	}
}

// crowd sends all but the last byte of a body from each of many strangers, asks as a
// known caller, waits until so many strangers were refused, and returns by how much the
// heap had grown at most.
func (s *site) crowd(t *testing.T, target, refusal string, refused int) (grown int64) {
	t.Helper()
	raw := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: gateway.test\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		target, strangersBody, strings.Repeat(" ", strangersBody-1))
	before := heap()
	conns := make([]net.Conn, strangers)
	for i := range conns {
		conns[i] = s.dial(t)
		defer func() { _ = conns[i].Close() }()
		if _, err := conns[i].Write([]byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	body := `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA A40"},"env":{"A":"` + strings.Repeat("x", 60_000) + `"}}`
	for _, c := range []struct {
		raw  string
		want int
	}{
		{request("GET", "/v2/pods", k1, ""), http.StatusOK},
		{request("POST", "/v2/pods", k1, body), http.StatusCreated},
	} {
		if a := s.ask(t, c.raw); a.Status != c.want {
			t.Errorf("a known caller: %d %s, want %d", a.Status, a.Body, c.want)
		}
	}
	for late := time.Now().Add(time.Minute); ; {
		grown = max(grown, int64(heap())-int64(before))
		switch n := strings.Count(s.logs.String(), `"`+refusal+`"`); {
		case n >= refused:
			return grown
		case time.Now().After(late):
			t.Fatalf("%d of %d strangers were refused as %s, want %d", n, strangers, refusal, refused)
		}
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
