package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// history keeps one decision.
type history struct{}

func (history) Find(_ context.Context, _, id string) (any, error) {
	switch id {
	case "d1":
		return map[string]string{"decisionId": id}, nil
	case "away":
		return nil, errors.New("the store is away")
	}
	return nil, nil //nolint:nilnil // none is kept
}

func (history) List(_ context.Context, q admin.DecisionQuery) (any, error) {
	if q.Org == "away" {
		return nil, errors.New("the store is away")
	}
	return []admin.DecisionQuery{q}, nil
}

func (history) Watch(ctx context.Context, q admin.DecisionQuery) <-chan any {
	c := make(chan any)
	go func() {
		defer close(c)
		for _, v := range []any{q, admin.Missed{Missed: 3}} {
			select {
			case c <- v:
			case <-ctx.Done():
			}
		}
		<-ctx.Done()
	}()
	return c
}

func (history) Counts(_ context.Context, org string, from, _ time.Time) ([]admin.PolicyCount, error) {
	if org == "away" {
		return nil, errors.New("the store is away")
	}
	return []admin.PolicyCount{
		{Hour: from, Policy: "gpu_count", Verdict: "denies", Team: "ml", Calls: 2},
		{Hour: from, Policy: "gpu_count", Verdict: "would deny", Team: "ops", Calls: 1},
		{Hour: from.Add(time.Hour), Policy: "gpu_count", Verdict: "denies", Team: "ml", Calls: 3},
		{Hour: from.Add(time.Hour), Policy: "price_ceiling", Verdict: "denies", Calls: 4},
	}, nil
}

func (history) Explain(_ context.Context, _ string, question []byte) (any, error) {
	if string(question) == "nonsense" {
		return nil, row.BadRequestError{Reason: "not a question"}
	}
	return map[string]string{"asked": string(question)}, nil
}

func (history) Log(_ context.Context, w io.Writer, org string, since time.Time) error {
	switch org {
	case "acme":
		_, err := fmt.Fprintf(w, "{\"since\":%q}\n", since.Format(time.RFC3339))
		return err
	case "none":
		return row.RefusedError{Status: 409, Reason: "no file"}
	}
	return row.ErrNoOrg
}

func (history) Audit(_ context.Context, org string) (any, error) {
	switch org {
	case "acme":
		return map[string]string{"org": org}, nil
	case "away":
		return nil, context.DeadlineExceeded
	}
	return nil, row.ErrNoOrg
}

func TestDecisions(t *testing.T) {
	for _, tc := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"GET", "/admin/decisions/log?org=acme&since=2026-11-22T15:04:05Z", "", 200, `{"since":"2026-11-22T15:04:05Z"}`},
		{"GET", "/admin/decisions/log?org=acme&since=yesterday", "", 400, "since"},
		{"GET", "/admin/decisions/log?org=none", "", 409, "no file"},
		{"GET", "/admin/decisions/log?org=acmee", "", 404, `did you mean \"acme\"?; known: acme, globex`},
		{"GET", "/admin/policies/counts?org=acme", "", 200, `"policy": "gpu_count",
      "verdict": "denies",
      "team": "ml",
      "calls": 5`},
		{"GET", "/admin/policies/counts?org=acme&bucket=hour&since=90d", "", 200, `"hour": "2001-08-10T01:00:00Z"`},
		{"GET", "/admin/policies/counts?org=acme&verdict=would+deny&team=ml", "", 200, `"counts": []`},
		{"GET", "/admin/policies/counts?org=acme&policy=price_ceiling", "", 200, `"calls": 4`},
		{"GET", "/admin/policies/counts?org=acme&verdict=no", "", 400, "expected denies, warns, would deny, excepted or changes"},
		{"GET", "/admin/policies/counts?org=away", "", 503, "does not answer"},
		{"GET", "/admin/policies/counts", "", 400, "org: is required"},
		{"GET", "/admin/decisions/d1", "", 200, `"decisionId": "d1"`},
		{"GET", "/admin/decisions/d2", "", 404, "no decision of that id"},
		{"GET", "/admin/decisions/away", "", 503, "does not answer"},
		{"GET", "/admin/decisions?org=acme", "", 200, `"Limit": 50`},
		{"GET", "/admin/decisions?org=acme&limit=7", "", 200, `"Limit": 7`},
		{"GET", "/admin/decisions?team=research", "", 200, `"Team": "research"`},
		{"GET", "/admin/decisions?key=ann", "", 200, `"Key": "ann"`},
		{"GET", "/admin/decisions?refused=true", "", 200, `"Refused": true`},
		{"GET", "/admin/decisions?refused=2", "", 400, "refused"},
		{"GET", "/admin/decisions?since=2026-11-22T15:04:05Z", "", 200, `"Since": "2026-11-22T15:04:05Z"`},
		{"GET", "/admin/decisions?since=-1h", "", 400, "since"},
		{"GET", "/admin/decisions?org=away", "", 200, `"incomplete": "the shared store`},
		{"GET", "/admin/decisions?since=24h", "", 200, `"Since": "2001-09-08T01:46:40Z"`},
		{"GET", "/admin/decisions?team=resarch", "", 404, `did you mean \"research\"?; known: ml, ops, research`},
		{"GET", "/admin/decisions?org=globex&team=research", "", 404, `no team of globex is called \"research\"; known: ml`},
		{"GET", "/admin/decisions?teem=research", "", 400, `"parameter": "teem"`},
		{"GET", "/admin/decisions?limit=1&limit=2", "", 400, "more than once"},
		{"GET", "/admin/decisions?limit=0", "", 400, "limit"},
		{"GET", "/admin/decisions?limit=many", "", 400, "limit"},
		{"POST", "/admin/explain", "{}", 200, `"asked": "{}"`},
		{"POST", "/admin/explain", "nonsense", 400, "not a question"},
		{"POST", "/admin/explain", strings.Repeat(" ", 2<<20), 400, "cannot be read"},
		{"GET", "/admin/explain", "", 405, ""},
		{"GET", "/admin/audit?org=acme", "", 200, `"org": "acme"`},
		{"GET", "/admin/audit?org=away", "", 502, "deadline"},
		{"GET", "/admin/audit", "", 400, "org: is required"},
		{"GET", "/admin/audit/log", "", 409, "audit.file is not set"},
		{"GET", "/admin/status", "", 200, `"revision": "p1"`},
	} {
		w := httptest.NewRecorder()
		admin.New(deps("")).ServeHTTP(w, httptest.NewRequest(tc.method, "http://127.0.0.1:8081"+tc.target, strings.NewReader(tc.body)))
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s: %d %s, want %d and %q", tc.method, tc.target, w.Code, w.Body, tc.status, tc.want)
		}
	}
	for _, target := range []string{"/admin/decisions", "/admin/decisions/d1", "/admin/audit?org=acme", "/admin/approvals?org=acme"} {
		if w := get(deps("secret"), target, ""); w.Code != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d", target, w.Code)
		}
	}
}
