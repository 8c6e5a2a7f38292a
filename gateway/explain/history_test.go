package explain

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// happened is an exchange of an organisation at a second.
func happened(org string, second int, method string, status int) *filter.Exchange {
	return &filter.Exchange{Caller: &identity.Caller{Org: org}, Event: &telemetry.Event{
		DecisionID: fmt.Sprintf("%s-%d", org, second), Start: time.Unix(int64(second), 0), Method: method, Status: status,
	}}
}

func ids(list []Summary) []string {
	out := []string{}
	for _, s := range list {
		out = append(out, s.DecisionID)
	}
	return out
}

// Views of a caller's own records are not listed, even if they are throttled. Denied views are listed.
func TestHistoryWithoutLocalReads(t *testing.T) {
	t.Parallel()
	h, self := NewHistory(20, nil), &route.Route{ID: "self.me", Dialect: route.V2}
	for i, c := range []struct {
		method, refusal string
		status          int
		route           *route.Route
	}{
		{"GET", "", 200, self},
		{"GET", string(problem.RateLimited), 429, self},
		{"GET", string(problem.Overloaded), 503, self},
		{"GET", string(problem.Forbidden), 403, self},
		{"POST", string(problem.RateLimited), 429, self},
		{"GET", string(problem.RateLimited), 429, &route.Route{ID: "listPods", Dialect: route.V1}},
		{"GET", string(problem.NotFound), 404, nil},
	} {
		ex := happened("acme", i, c.method, c.status)
		ex.Event.Refusal, ex.Route = c.refusal, c.route
		h.Ended(ex)
	}
	if diff := cmp.Diff([]string{"acme-6", "acme-5", "acme-4", "acme-3"}, ids(h.List(Query{Limit: 20}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	h := NewHistory(6, nil) // three that tell something, three plain reads
	h.add(Ended(happened("acme", 1, "POST", 201)))
	for i := 2; i < 50; i++ {
		h.add(Ended(happened("acme", i, "GET", 200)))
	}
	h.add(Ended(happened("globex", 50, "GET", 404)))
	if diff := cmp.Diff([]string{"globex-50", "acme-49", "acme-48", "acme-47", "acme-1"}, ids(h.List(Query{Limit: 100}))); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"acme-49", "acme-48"}, ids(h.List(Query{Org: "acme", Limit: 2}))); diff != "" {
		t.Errorf("acme's latest two (-want +got):\n%s", diff)
	}
	if _, ok := h.Find(new(filter.Chain), "acme-2"); ok {
		t.Error("a read that was pushed out is still found")
	}
	if x, ok := h.Find(new(filter.Chain), "acme-1"); !ok || x.Status != 201 {
		t.Errorf("the create was pushed out by reads: %+v", x)
	}
	for i := 60; i < 70; i++ {
		h.add(Ended(happened("acme", i, "POST", 403)))
	}
	if n := len(h.List(Query{Limit: 100})); n != 6 {
		t.Errorf("%d exchanges are kept, want 6", n)
	}
	own := &Report{DecisionID: "own-1", Time: time.Now(), Caller: Caller{Org: "acme"}, Own: &OwnAction{Resource: "p1", Did: "stopped"}}
	h.AddOwn(own)
	if diff := cmp.Diff([]string{"own-1"}, ids(h.List(Query{Own: true, Limit: 100}))); diff != "" {
		t.Errorf("what the gateway did by itself (-want +got):\n%s", diff)
	}
	if x, ok := h.Find(new(filter.Chain), "own-1"); !ok || x != own {
		t.Errorf("found %+v, want what was kept", x)
	}
	if got := ids(NewHistory(0, nil).List(Query{Limit: 10})); len(got) != 0 {
		t.Errorf("an empty history lists %v", got)
	}
}
