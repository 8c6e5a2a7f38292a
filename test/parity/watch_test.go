package parity

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// following is an open stream of decisions.
type following struct {
	status int
	header http.Header
	// events are names and data, with a space between; closed at the end.
	events <-chan string
	leave  func()
}

// follow opens a stream of decisions at a gateway with a token, by HTTP.
func follow(t *testing.T, g *gateway.Gateway, token, query string) following {
	t.Helper()
	s := httptest.NewServer(g.AdminHandler())
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/admin/decisions/stream?"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := new(http.Transport)
	res, err := transport.RoundTrip(req) //nolint:bodyclose // leave closes it
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 100)
	go func() {
		defer close(events)
		name := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if n, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = n
			} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				events <- name + " " + data
			}
		}
	}()
	leave := sync.OnceFunc(func() { _ = res.Body.Close(); transport.CloseIdleConnections(); s.Close() })
	t.Cleanup(leave)
	return following{res.StatusCode, res.Header, events, leave}
}

// next returns the next decision, and fails when something else comes, or nothing.
func (f following) next(t *testing.T) explain.Summary {
	t.Helper()
	var s explain.Summary
	data, ok := strings.CutPrefix(f.event(t), "decision ")
	if !ok || json.Unmarshal([]byte(data), &s) != nil {
		t.Fatalf("the stream says %q, want a decision", data)
	}
	return s
}

func (f following) event(t *testing.T) string {
	t.Helper()
	select {
	case e := <-f.events:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("the stream says nothing")
		return ""
	}
}

// A stream tells the decisions of this gateway and of others, each once, and only those that it is
// asked for.
func TestDecisionsAreStreamed(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", administered)
	other := d.other(t)
	all, refused, research := follow(t, d.gateway, "token_vera", ""), follow(t, d.gateway, "token_vera", "org=acme&refused=true"), follow(t, other.gateway, "token_vera", "team=research&operation=createPod")
	count, globex := follow(t, d.gateway, "token_vera", "policy=gpu_count"), follow(t, d.gateway, "token_gary", "")
	if all.status != 200 || all.header.Get("Content-Type") != "text/event-stream" || all.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("stream: %d %v", all.status, all.header)
	}
	d.ask(t, request("GET", "/v2/pods", "key_globex", ""))
	d.ask(t, request("POST", "/v2/pods", "key_platform", podL4))
	pods := strings.Replace(podL4, `"gpu":{`, `"gpu":{"count":3,`, 1)
	denied := d.ask(t, request("POST", "/v2/pods", "key_research", pods)).Header.Get("X-Tollgate-Decision")
	if a, b, c := all.next(t), all.next(t), all.next(t); a.Org != "globex" || b.Key != "key_platform" || c.DecisionID != denied {
		t.Errorf("the stream of all tells %+v, %+v, %+v", a, b, c)
	}
	for name, f := range map[string]following{"refused": refused, "a policy": count, "a team at another gateway": research} {
		if s := f.next(t); s.DecisionID != denied {
			t.Errorf("the stream of %s tells %+v, want the refusal", name, s)
		}
	}
	if s := globex.next(t); s.Org != "globex" {
		t.Errorf("the stream of an admin of globex tells %+v", s)
	}
	d.ask(t, request("GET", "/v2/pods", "key_globex", ""))
	if s := globex.next(t); s.Org != "globex" {
		t.Errorf("the stream of an admin of globex tells %+v", s)
	}
	if s := all.next(t); s.Org != "globex" { // and not the refusal once more, from the archive
		t.Errorf("the stream of all tells %+v", s)
	}
}

// Who may not ask gets no stream, and a stream ends with its token, its role, and the gateway.
func TestStreamsOfDecisionsEnd(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", administered)
	for name, tt := range map[string]struct {
		token, query string
		want         int
	}{
		"none": {"", "", 401}, "a caller's key": {"key_platform", "", 401}, "a past admin": {"token_past", "", 401},
		"another organisation": {"token_gary", "org=acme", 403}, "no organisation": {"token_vera", "org=acmee", 404}, "no parameter": {"token_vera", "limit=3", 400},
	} {
		if f := follow(t, d.gateway, tt.token, tt.query); f.status != tt.want {
			t.Errorf("%s: %d, want %d", name, f.status, tt.want)
		}
	}
	vera, gary, ada := follow(t, d.gateway, "token_vera", ""), follow(t, d.gateway, "token_gary", ""), follow(t, d.gateway, "token_ada", "")
	text := strings.Replace(d.text, "{name: vera,", "{name: wera, roles: [viewer], sha256: SHA256(token_wera)}, #", 1)
	text = strings.Replace(text, "org: globex", "org: acme", 1)
	if err := d.gateway.Swap(load(t, text, d.upstream)); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]following{"who has no token any more": vera, "who is bound elsewhere": gary} {
		if e := f.event(t); !strings.HasPrefix(e, "end ") {
			t.Errorf("the stream of %s says %q, want its end", name, e)
		}
		if e, open := <-f.events; open {
			t.Errorf("the stream of %s goes on: %q", name, e)
		}
	}
	d.ask(t, request("GET", "/v2/pods", "key_globex", ""))
	if s := ada.next(t); s.Org != "globex" {
		t.Errorf("the stream of ada tells %+v", s)
	}
	end := run(t, d)
	late := follow(t, d.gateway, "token_ada", "")
	var ending sync.WaitGroup
	ending.Go(end)
	if e := late.event(t); e != `end {"reason":"gateway is draining"}` {
		t.Errorf("at the end of the gateway the stream says %q", e)
	}
	ending.Wait()
	ada.leave()
}

// Lists of decisions have pages: the time of the last of one leads to the next.
func TestDecisionsHavePages(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http")
	for range 5 {
		d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
		d.clock.Advance(time.Second)
	}
	all, _ := d.listed(t, "org=acme")
	var paged []explain.Summary
	for query := "org=acme&limit=2"; ; {
		page, _ := d.listed(t, query)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		query = "org=acme&limit=2&before=" + page[len(page)-1].Time.Format(time.RFC3339Nano)
	}
	if len(all) != 5 || encode(t, paged) != encode(t, all) {
		t.Errorf("pages:\n%s\nwant\n%s", encode(t, paged), encode(t, all))
	}
}
