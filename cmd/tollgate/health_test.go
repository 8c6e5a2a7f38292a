package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"ready", 200, `{"status": "ready", "revision": "r1"}`, nil, 0, "ready\n", ""},
		{"live", 200, `{"status": "live"}`, []string{"--live"}, 0, "live\n", ""},
		{"draining", 503, `{"status": "not serving"}`, nil, exitFailure, "", "tollgate: not serving\n"},
		{"something else", 404, `404 page not found`, nil, exitFailure, "", "tollgate: 404 Not Found\n"},
		{"slow", 0, "", []string{"--timeout", "1ms"}, exitFailure, "", "no response within the timeout\n"},
		{"a wrong command line", 200, `{}`, []string{"--livez"}, exitUsage, "", "unknown flag"},
	} {
		for _, start := range []func(http.Handler) *httptest.Server{httptest.NewServer, httptest.NewTLSServer} {
			var asked string
			server := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path
				if tc.status == 0 {
					<-r.Context().Done()
					return
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			file := "admin: {listen: '" + server.Listener.Addr().String() + "'}\n"
			if server.TLS != nil {
				file = strings.Replace(file, "}", ", tls: {key: {env: ABSENT}}}", 1)
			}
			path := filepath.Join(t.TempDir(), "tollgate.yaml")
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append([]string{"health", "-c", path}, tc.args...), &stdout, &stderr)
			server.Close()
			if code != tc.code || stdout.String() != tc.stdout || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("%s, %s: exit %d, stdout %q, stderr %q; want %d, %q, %q", tc.name, server.URL, code, stdout.String(), stderr.String(),
					tc.code, tc.stdout, tc.stderr)
			}
			want := map[string]string{"--live": "/livez", "": "/readyz"}[strings.Join(tc.args, " ")]
			if want != "" && asked != want {
				t.Errorf("%s: asked %s, want %s", tc.name, asked, want)
			}
		}
	}
}
