package parity

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/world"
)

// busy sends reads that the platform holds back, until they are open at the gateway.
func (d *door) busy(t *testing.T, n int) {
	t.Helper()
	for range n {
		if _, err := io.WriteString(world.Dial(t, d.addr), request("GET", "/v2/registries", "key_research", "")); err != nil {
			t.Fatal(err)
		}
	}
	open := fmt.Sprintf(`tollgate_overload_slots{state="open"} %d`, n)
	world.Until(t, "the reads are open", func() bool { return strings.Contains(d.page(t, "/metrics"), open) })
}

// holding puts a platform behind a door that answers listRegistries when release is
// called.
func holding(t *testing.T) (_ option, release func()) {
	t.Helper()
	held := make(chan struct{})
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	return func(d *door) {
		to, err := url.Parse(d.upstream)
		if err != nil {
			t.Fatal(err)
		}
		forward := httputil.NewSingleHostReverseProxy(to)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/registries" {
				<-held
			}
			forward.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		t.Cleanup(release)
		d.upstream = s.URL
	}, release
}

// With as many requests under way as there may be, reads and creates are refused in
// the words of their dialect, and what lowers cost passes in all of them.
func TestOverload(t *testing.T) {
	bound := func(d *door) {
		d.text = strings.Replace(d.text, "overload: {working: 10000}", "overload: {open: 10}", 1)
		d.adjust = func(c *settings.Config) { c.Overload.Waiting = 0 }
	}
	for _, name := range []string{"http", "envoy"} {
		t.Run(name, func(t *testing.T) {
			platform, release := holding(t)
			overloaded(t, openDoor(t, name, platform, bound), release)
		})
	}
}

func overloaded(t *testing.T, d *door, release func()) {
	t.Helper()
	pod := func() string {
		p := d.asPlatform(t, "POST", "/v2/pods", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`)
		id, _ := p["id"].(string)
		return id
	}
	pods := []string{pod(), pod(), pod(), pod(), pod(), pod()}
	d.platform.Clock().Advance(time.Minute) // they run now
	d.ask(t, request("GET", "/v2/catalog/gpus", "key_platform", ""))
	before := d.left(t, "key_platform")
	d.busy(t, 9)

	type shed struct {
		Status           int
		RetryAfter, Body string
	}
	var got []shed
	refused := []string{
		request("GET", "/v2/pods/"+pods[0], "key_platform", ""),
		request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`),
		request("GET", "/v1/pods", "key_platform", ""),
		request("POST", "/v1/pods", "key_platform", `{"name":"c","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`),
	}
	byBody := []string{
		request("POST", "/v2/pods/"+pods[0]+"/action", "key_platform", `{"action":"start"}`),
		request("POST", "/graphql", "key_platform", `{"query":"{ gpuTypes { id } }"}`),
		request("POST", "/graphql", "key_platform", `{"query":"mutation { podResume(input: {podId: \"x\", gpuCount: 1}) { id } }"}`),
	}
	for _, raw := range refused {
		a := d.ask(t, raw)
		got = append(got, shed{a.Status, a.Header.Get("Retry-After"), shape(a.Body)})
	}
	if after := d.left(t, "key_platform"); after != before {
		t.Errorf("%d calls left after what was refused, %d before: want as many", after, before)
	}
	for _, raw := range byBody {
		a := d.ask(t, raw)
		got = append(got, shed{a.Status, a.Header.Get("Retry-After"), shape(a.Body)})
	}
	want := []shed{
		{503, "1", "problem"},
		{503, "1", "problem"},
		{503, "1", "message"},
		{503, "1", "message"},
		{503, "1", "problem"},
		{503, "1", "errors"},
		{503, "1", "errors"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}

	for name, raw := range map[string]string{
		"v2 stop":        request("POST", "/v2/pods/"+pods[0]+"/action", "key_platform", `{"action":"stop"}`),
		"v2 delete":      request("DELETE", "/v2/pods/"+pods[1], "key_platform", ""),
		"v1 stop":        request("POST", "/v1/pods/"+pods[2]+"/stop", "key_platform", ""),
		"v1 delete":      request("DELETE", "/v1/pods/"+pods[3], "key_platform", ""),
		"GraphQL stop":   request("POST", "/graphql", "key_platform", `{"query":"mutation { podStop(input: {podId: \"`+pods[4]+`\"}) { id } }"}`),
		"GraphQL delete": request("POST", "/graphql", "key_platform", `{"query":"mutation { podTerminate(input: {podId: \"`+pods[5]+`\"}) }"}`),
	} {
		if a := d.ask(t, raw); a.Status >= 300 || strings.Contains(a.Body, `"errors"`) {
			t.Errorf("%s: %d %s, want it carried out", name, a.Status, a.Body)
		}
	}

	page := d.page(t, "/metrics")
	for _, series := range []string{`priority="read",reason="full"} 3`, `priority="change",reason="full"} 4`, `priority="lower",reason="full"} 0`} {
		if !strings.Contains(page, series) {
			t.Errorf("the metrics lack %s", series)
		}
	}
	release()
	world.Until(t, "reads pass again", func() bool {
		return d.ask(t, request("GET", "/v2/catalog/gpus", "key_platform", "")).Status == 200
	})
}

// shape names the dialect that a refusal is written in.
func shape(body string) string {
	switch {
	case strings.Contains(body, `"decision"`) && strings.Contains(body, `"title"`):
		return "problem"
	case strings.Contains(body, `"errors"`):
		return "errors"
	case strings.Contains(body, `"message"`):
		return "message"
	default:
		return body
	}
}
