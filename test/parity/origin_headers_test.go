package parity

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// A read that the platform answers with a document has no origin in a browser, whichever door it came through.
func TestDocumentsHaveNoOrigin(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		a := d.ask(t, request("GET", "/v2/pods/p1", "key_research", ""))
		if got := a.Header.Get("Content-Security-Policy"); a.Status != http.StatusOK || got != "sandbox" || a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Refresh") != "" {
			t.Errorf("a document: %d %v, want the policy sandbox", a.Status, a.Header)
		}
		a = d.ask(t, request("GET", "/v2/pods", "key_research", ""))
		if a.Status != http.StatusOK || a.Header.Get("Content-Security-Policy") != "" {
			t.Errorf("a list: %d %v", a.Status, a.Header)
		}
	}, func(d *door) {
		base, err := url.Parse(d.platform.URL)
		if err != nil {
			t.Fatal(err)
		}
		emulator := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) }}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/p1") {
				emulator.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Refresh", "0;url=https://evil.example")
			w.Header().Set("Content-Security-Policy", "default-src *")
			_, _ = io.WriteString(w, `"<script>alert(document.domain)</script>"`)
		}))
		t.Cleanup(s.Close)
		d.upstream = s.URL
	})
}
