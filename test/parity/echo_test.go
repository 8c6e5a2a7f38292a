package parity

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// wink is the text that the echoing platform replaces by the key it was sent.
const wink = "say-the-key"

// echoing puts a platform in front of the door's own that says the key it was sent, in
// successes, too. The events of a log have it in parts.
func echoing(t *testing.T) option {
	t.Helper()
	return func(d *door) {
		base, err := url.Parse(d.platform.URL)
		if err != nil {
			t.Fatal(err)
		}
		emulator := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) },
			ModifyResponse: func(res *http.Response) error {
				b, err := io.ReadAll(res.Body)
				key := strings.TrimPrefix(res.Request.Header.Get("Authorization"), "Bearer ")
				b = bytes.ReplaceAll(b, []byte(wink), []byte(key))
				res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
				res.Header.Set("Content-Length", strconv.Itoa(len(b)))
				res.Header.Set("Cache-Control", "private, x="+key)
				return err
			},
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/logs") {
				emulator.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			rc := http.NewResponseController(w)
			for _, part := range []string{"data: 1 ", r.Header.Get("Authorization"), "\n\n"} {
				for _, c := range []byte(part) {
					_, _ = w.Write([]byte{c})
					_ = rc.Flush()
				}
			}
			_, _ = io.WriteString(w, "data: 2\n\n")
			_ = rc.Flush()
			<-r.Context().Done()
		}))
		t.Cleanup(s.Close)
		d.upstream = s.URL
	}
}

// The platform's key is taken out of successes, too, in all dialects. Through ext_proc,
// v2's bodies are not seen but where a stage wants them whole, as of creates.
func TestSuccessesHaveNoPlatformKey(t *testing.T) {
	t.Parallel()
	const masked = "[redacted]"
	eachDoor(t, func(t *testing.T, d *door) {
		created := d.ask(t, request("POST", "/v2/templates", "key_platform", `{"name":"`+wink+`","image":"i:1"}`))
		target := "/templates/" + fmt.Sprint(field(t, created.Body, "id"))
		answers := map[string]answer{
			"create": created,
			"v1":     d.ask(t, request("GET", "/v1"+target, "key_platform", "")),
			"v1 all": d.ask(t, request("GET", "/v1/templates", "key_platform", "")),
			"v1 new": d.ask(t, request("POST", "/v1/templates", "key_platform", `{"name":"`+wink+`-v1","imageName":"i:1"}`)),
			"graphql": d.ask(t, request("POST", "/graphql", "key_platform",
				`{"query":"{ myself { podTemplates { id name } } }"}`)),
		}
		if d.name == "http" {
			answers["read"] = d.ask(t, request("GET", "/v2"+target, "key_platform", ""))
			answers["list"] = d.ask(t, request("GET", "/v2/templates", "key_platform", ""))
			answers["update"] = d.ask(t, request("PATCH", "/v2"+target, "key_platform", `{"name":"`+wink+`"}`))
		}
		for name, a := range answers {
			if a.Status >= 300 || strings.Contains(flat(a), canary) || !strings.Contains(a.Body, masked) {
				t.Errorf("%s: %d %s, want one that says %s", name, a.Status, a.Body, masked)
			}
		}
		if logs := d.logs.String(); strings.Contains(logs, canary) {
			t.Error("the key is in the log")
		}
	}, echoing(t))
}

// A stream has no key either, however it is cut into parts, and the parts behind it do not wait.
func TestStreamsHaveNoPlatformKey(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", echoing(t))
	lines, stop := d.stream(t, "/v2/pods/p1/logs", "key_research")
	defer stop()
	if got := <-lines; !strings.HasPrefix(got, "data: 1 Bearer [redacted]") || strings.Contains(got, canary) {
		t.Errorf("the event is %q", got)
	}
	<-lines
	if got := <-lines; got != "data: 2" {
		t.Errorf("the event behind it is %q", got)
	}
}
