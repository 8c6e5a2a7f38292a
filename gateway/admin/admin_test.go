package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// listener is an admin listener and its sources.
type listener struct {
	*admin.Guard
	admin.Deps
}

func (l listener) handler() http.Handler { return admin.New(l.Guard, l.Deps.Endpoints()) }

func deps(token string) listener {
	return listener{
		&admin.Guard{
			Admins: func() *admin.Directory { return directory(token) }, Now: now, Attempts: attempts(1000, 30), Logger: slog.New(slog.DiscardHandler),
		},
		admin.Deps{
			Metrics:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }),
			Ready:    func() admin.Readiness { return admin.Readiness{Ready: true, Status: "ready", Revision: "r1"} },
			Features: features(),
		},
	}
}

func now() time.Time { return time.Unix(1e9, 0) }

// tenants are the organisations of tests. Those that are away have stores that do not answer.
var tenants = []adminapi.Tenant{{ID: "acme", Teams: []string{"research", "ops"}}, {ID: "globex", Teams: []string{"ml"}}, {ID: "away"}, {ID: "none"}}

// directory has the admin of the shared token, if there is one.
func directory(token string, accounts ...settings.AdminAccount) *admin.Directory {
	d, err := admin.NewDirectory(token, accounts)
	if err != nil {
		panic(err) // the accounts are those of tests
	}
	return d.WithOrgs(tenants)
}

// attempts bounds the wrong tokens of an address: how many at once, and how many a minute.
func attempts(burst, rate int64) *ratelimit.AddressLimiter {
	cfg := ratelimit.DefaultAddressConfig()
	cfg.Burst, cfg.Rate = burst, rate
	l, err := ratelimit.NewAddressLimiter(cfg, clock{}.Now)
	if err != nil {
		panic(err) // a test has a wrong configuration
	}
	return l
}

type clock struct{}

func (clock) Now() time.Time { return now() }

// features are the rows of a feature that knows one organisation.
func features() []adminapi.Endpoint {
	type scope struct {
		adminapi.OrgParam

		Scope string `query:"scope"`
	}
	type posted struct{ Question adminapi.Body }
	type one struct {
		ID string `query:"id,required"`
	}
	known := func(p scope) error {
		switch {
		case p.Org != "acme":
			return adminapi.ErrUnknownOrg
		case p.Scope == "nonsense":
			return adminapi.BadRequestError{Reason: "want kind:id"}
		}
		return nil
	}
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/limits", Summary: "Windows in use", Role: adminapi.Viewer, AuditsReads: true, Subject: adminapi.SubjectOrg,
			Handler: adminapi.HandlerFor(func(_ context.Context, _ adminapi.Principal, p scope) (int, error) { return 5, known(p) }),
		},
		{
			Pattern: "POST /admin/limits/reset", Summary: "Empty windows", Role: adminapi.Operator, Subject: adminapi.SubjectOrg, Mutates: true,
			Handler: adminapi.HandlerFor(func(_ context.Context, _ adminapi.Principal, p scope) (none adminapi.NoContent, err error) {
				return none, known(p)
			}),
		},
		{
			Pattern: "GET /admin/decisions/{id}", Summary: "One", Role: adminapi.Viewer, Subject: adminapi.SubjectCaller,
			Handler: adminapi.HandlerFor(func(_ context.Context, _ adminapi.Principal, p one) (string, error) {
				if p.ID == "away" {
					return "", errors.New("dial 10.0.0.1: refused")
				}
				return p.ID, nil
			}),
		},
		{
			Pattern: "POST /admin/explain", Summary: "Explain", Role: adminapi.Viewer, Subject: adminapi.SubjectCaller, Body: reflect.TypeFor[string](),
			Handler: adminapi.HandlerFor(func(_ context.Context, _ adminapi.Principal, p posted) (string, error) {
				return string(p.Question), nil
			}),
		},
	}
}

func get(d listener, target, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8081"+target, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	d.handler().ServeHTTP(w, r)
	return w
}

func TestReadiness(t *testing.T) {
	d := deps("")
	for _, tt := range []struct {
		name  string
		state admin.Readiness
		want  int
		body  string
	}{
		{"before serving", admin.Readiness{Status: "not serving"}, 503, `{"status":"not serving"}`},
		{"ready", admin.Readiness{Ready: true, Status: "ready", Revision: "r1"}, 200, `{"status":"ready","revision":"r1"}`},
		{
			"degraded",
			admin.Readiness{Ready: true, Status: "ready, but reads are slow", Dependencies: []admin.Dependency{
				{Name: "redis", State: admin.DependencyDown, Effect: "reads are slow"}, {Name: "prices", State: admin.DependencyUp},
			}},
			200, `{"status":"ready, but reads are slow","dependencies":[{"name":"redis","state":"down","effect":"reads are slow"},{"name":"prices","state":"up"}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d.Ready = func() admin.Readiness { return tt.state }
			var body bytes.Buffer
			w := get(d, "/readyz", "")
			if err := json.Compact(&body, w.Body.Bytes()); err != nil || w.Code != tt.want || strings.TrimSpace(body.String()) != tt.body {
				t.Errorf("%d %s %v, want %d %s", w.Code, &body, err, tt.want, tt.body)
			}
			if w := get(d, "/livez", ""); w.Code != http.StatusOK {
				t.Errorf("livez: %d, want 200", w.Code)
			}
		})
	}
}

func TestTheTokenGuardsAllButProbesAndMetrics(t *testing.T) {
	const token = "operators-only"
	for target, open := range map[string]bool{
		"/livez": true, "/readyz": true, "/metrics": true,
		"/admin/orgs": false, "/admin/limits?org=acme": false, "/debug/pprof/": false, "/debug/pprof/goroutine?debug=1": false,
	} {
		d := deps(token)
		for authorization, admitted := range map[string]bool{"": open, "Bearer wrong": open, "Bearer ": open, "Bearer " + token: true, "bearer  " + token: true} {
			if got := get(d, target, authorization).Code != http.StatusUnauthorized; got != admitted {
				t.Errorf("%s with %q: admitted = %t, want %t", target, authorization, got, admitted)
			}
		}
	}
}

// A row gets the parameters of its path and the content of the request, and a failure names no address.
func TestQuestions(t *testing.T) {
	for _, tc := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"GET", "/admin/decisions/d1", "", 200, `"d1"`},
		{"GET", "/admin/decisions/away", "", 503, "shared store unavailable"},
		{"GET", "/admin/decisions/d1?teem=x", "", 400, `"parameter": "teem"`},
		{"POST", "/admin/explain", "{}", 200, "{}"},
		{"POST", "/admin/explain", strings.Repeat(" ", 2<<20), 413, "larger than 1 MiB"},
		{"GET", "/admin/explain", "", 405, ""},
	} {
		w := httptest.NewRecorder()
		deps("").handler().ServeHTTP(w, httptest.NewRequest(tc.method, "http://127.0.0.1:8081"+tc.target, strings.NewReader(tc.body)))
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) || strings.Contains(w.Body.String(), "10.0.0.1") {
			t.Errorf("%s %s: %d %s, want %d and %q", tc.method, tc.target, w.Code, w.Body, tc.status, tc.want)
		}
	}
}

// Long answers have a content coding, for askers that accept one; so has no question, whose answer repeats what was sent.
func TestLongAnswersAreCompressed(t *testing.T) {
	d := deps("")
	for method, coding := range map[string]string{http.MethodGet: "gzip", http.MethodPost: ""} {
		long, target := strings.Repeat("a", 20_000), "/admin/explain"
		if method == http.MethodGet {
			target = "/admin/decisions/" + long
		}
		r := httptest.NewRequest(method, "http://127.0.0.1:8081"+target, strings.NewReader(long))
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		d.handler().ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); w.Code != http.StatusOK || got != coding || (w.Body.Len() < len(long)) != (coding == "gzip") {
			t.Errorf("%s: %d with coding %q and %d bytes, want %q", method, w.Code, got, w.Body.Len(), coding)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		method, target, header string
		want                   int
	}{
		{"GET", "/admin/limits?org=acme", "", 200},
		{"GET", "/admin/limits?org=nobody", "", 404},
		{"GET", "/admin/limits", "", 400},
		{"POST", "/admin/limits/reset?org=acme", "", 204},
		{"POST", "/admin/limits/reset?org=acme&scope=key:ann", "", 204},
		{"POST", "/admin/limits/reset?org=acme&scope=nonsense", "", 400},
		{"POST", "/admin/limits/reset?org=nobody", "", 404},
		{"GET", "/admin/limits/reset?org=acme", "", 405},
		{"POST", "/admin/limits/reset?org=acme", "cross-site", 403},
	} {
		r := httptest.NewRequest(tc.method, "http://127.0.0.1:8081"+tc.target, nil)
		if tc.header != "" {
			r.Header.Set("Sec-Fetch-Site", tc.header)
		}
		w := httptest.NewRecorder()
		deps("").handler().ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s %s: %d %s, want %d", tc.method, tc.target, w.Code, w.Body, tc.want)
		}
	}
}
