package admin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Without a token, a page whose name was turned to this address gets nothing
// and changes nothing.
func TestNamesOfOthersAreRefusedWithoutAToken(t *testing.T) {
	for _, tc := range []struct {
		host, method, target, token string
		want                        int
	}{
		{"evil.example:8081", http.MethodGet, "/admin/orgs", "", http.StatusMisdirectedRequest},
		{"evil.example", http.MethodGet, "/admin/decisions/x", "", http.StatusMisdirectedRequest},
		{"evil.example:8081", http.MethodPost, "/admin/limits/reset?org=acme", "", http.StatusMisdirectedRequest},
		{"localhost.evil.example", http.MethodGet, "/debug/pprof/", "", http.StatusMisdirectedRequest},
		{"127.0.0.1.evil.example", http.MethodGet, "/admin/orgs", "", http.StatusMisdirectedRequest},
		{"", http.MethodGet, "/admin/orgs", "", http.StatusMisdirectedRequest},
		{"127.0.0.1:8081", http.MethodGet, "/admin/orgs", "", http.StatusOK},
		{"localhost:8081", http.MethodGet, "/admin/orgs", "", http.StatusOK},
		{"[::1]:8081", http.MethodGet, "/admin/orgs", "", http.StatusOK},
		{"[::1]", http.MethodGet, "/admin/orgs", "", http.StatusOK},
		{"evil.example:8081", http.MethodGet, "/livez", "", http.StatusOK},
		{"gateway.internal:8081", http.MethodGet, "/admin/orgs", "secret", http.StatusOK},
	} {
		r := httptest.NewRequest(tc.method, tc.target, nil)
		r.Host = tc.host
		// The headers of a browser on a page that it takes for this listener's.
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		w := httptest.NewRecorder()
		deps(tc.token).handler().ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s %s for host %q: %d %s, want %d", tc.method, tc.target, tc.host, w.Code, w.Body, tc.want)
		}
	}
}
