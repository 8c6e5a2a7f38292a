package selfservice

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// asked are the parameters of the row that the route self.spend asks.
type asked struct {
	adminapi.OrgParam

	Team string `query:"team" doc:"id of a team"`
	Key  string `query:"key" doc:"id of a key"`
}

// spendBy returns the responder of self.spend, with ask in place of the row of operators.
func spendBy(ask func(p asked) (any, error)) filter.Responder {
	s := New(Deps{
		Endpoints: []adminapi.Endpoint{{
			Pattern: "GET /admin/spend/history", Role: adminapi.Viewer, Subject: adminapi.SubjectOrg,
			Handler: adminapi.HandlerFor(func(_ context.Context, _ adminapi.Principal, p asked) (any, error) { return ask(p) }),
		}},
		Current: view.New(func() time.Time { return time.Unix(0, 0) }),
	})
	all := s.Routes()
	return all[slices.IndexFunc(all, func(r filter.Served) bool { return r.ID == "self.spend" })].Answer
}

// caller is an exchange of a caller with query parameters.
func caller(c *identity.Caller, query url.Values) *filter.Exchange {
	return &filter.Exchange{Caller: c, Query: query, Event: new(telemetry.Event), Ports: new(filter.Ports)}
}

// The gateway makes eight answers at once. The ninth question is refused, and one more is answered after the end of any of them.
func TestEightAnswersAtOnce(t *testing.T) {
	t.Parallel()
	const most = 8
	entered, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, most)
	respond := spendBy(func(asked) (any, error) {
		entered <- struct{}{}
		<-proceed
		return struct{}{}, nil
	})
	ask := func() error {
		_, err := respond(t.Context(), caller(&identity.Caller{Org: "acme", Key: "ann"}, nil))
		return err
	}
	for range most {
		go func() { done <- ask() }()
	}
	for i := range most {
		select {
		case <-entered:
		case err := <-done:
			t.Fatalf("with %d answers under way: %v, want another one", i, err)
		}
	}
	p, refused := errors.AsType[*problem.Problem](ask())
	if !refused || p.Kind != problem.Overloaded || p.Header.Get("Retry-After") == "" {
		t.Errorf("the ninth: %+v, want overloaded with Retry-After", p)
	}
	proceed <- struct{}{}
	if err := <-done; err != nil {
		t.Error(err)
	}
	go func() { done <- ask() }()
	<-entered
	close(proceed)
	for range most {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A caller asks about itself, a lead about its team. No parameter changes that.
func TestAnswersAreAboutTheCaller(t *testing.T) {
	t.Parallel()
	ann := &identity.Caller{Org: "acme", Team: "research", Key: "ann"}
	lead := &identity.Caller{Org: "acme", Team: "research", Key: "lea", Roles: []identity.Role{identity.RoleLead}}
	for name, tt := range map[string]struct {
		c     *identity.Caller
		query url.Values
		want  asked
		fails bool
	}{
		"a key":                  {c: ann, want: asked{adminapi.OrgParam{Org: "acme"}, "research", "ann"}},
		"a key without a team":   {c: &identity.Caller{Org: "acme", Key: "bob"}, want: asked{adminapi.OrgParam{Org: "acme"}, "", "bob"}},
		"a lead":                 {c: lead, want: asked{adminapi.OrgParam{Org: "acme"}, "research", ""}},
		"a lead about a key":     {c: lead, query: url.Values{"key": {"ann"}}, want: asked{adminapi.OrgParam{Org: "acme"}, "research", "ann"}},
		"a lead of no team":      {c: &identity.Caller{Org: "acme", Key: "lea", Roles: lead.Roles}, want: asked{adminapi.OrgParam{Org: "acme"}, "", "lea"}},
		"about another key":      {c: ann, query: url.Values{"key": {"bob"}}, fails: true},
		"about a team":           {c: lead, query: url.Values{"team": {"ops"}}, fails: true},
		"about an organisation":  {c: lead, query: url.Values{"org": {"globex"}}, fails: true},
		"a caller without a key": {c: &identity.Caller{Org: "acme", Team: "research"}, fails: true},
		"nobody":                 {fails: true},
	} {
		var got []asked
		respond := spendBy(func(p asked) (any, error) { got = append(got, p); return struct{}{}, nil })
		a, err := respond(t.Context(), caller(tt.c, tt.query))
		if tt.fails {
			if p, refused := errors.AsType[*problem.Problem](err); !refused || p.Status/100 != 4 || len(got) > 0 {
				t.Errorf("%s: %v, asked %v; want a refusal", name, err, got)
			}
			continue
		}
		if err != nil || a.Status != http.StatusOK || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if diff := cmp.Diff([]asked{tt.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
