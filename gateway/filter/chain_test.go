package filter_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
)

// probe notes when it runs, and does a case's work.
type probe struct {
	name    string
	trail   *[]string
	request func(*filter.Exchange) error
	respond func(*filter.Exchange) error
}

func (p probe) Name() string { return p.name }

func (p probe) Request(_ context.Context, ex *filter.Exchange) error {
	*p.trail = append(*p.trail, "+"+p.name)
	if p.request == nil {
		return nil
	}
	return p.request(ex)
}

func (p probe) Response(_ context.Context, ex *filter.Exchange) error {
	*p.trail = append(*p.trail, "-"+p.name)
	if p.respond == nil {
		return nil
	}
	return p.respond(ex)
}

func exchange(path string) *filter.Exchange {
	table, err := route.NewTable([]route.Route{
		{ID: "createPod", Dialect: route.V1, Method: http.MethodPost, Pattern: "/v1/pods"},
		{ID: "graphql", Dialect: route.GraphQL, Method: http.MethodPost, Pattern: "/graphql"},
	})
	if err != nil {
		panic(err)
	}
	return (&filter.Pipeline{Table: table}).NewExchange(filter.Inbound{Door: "http", Method: http.MethodGet, Path: path, Header: http.Header{}})
}

func local(ex *filter.Exchange) error {
	ex.Response = &filter.Response{Status: http.StatusOK, Header: http.Header{}, Body: []byte("done")}
	return nil
}

func TestTheResponsePhaseRunsBackwardsOverWhatWasEntered(t *testing.T) {
	refuse := func(*filter.Exchange) error { return problem.Forbidden.New("no") }
	explode := func(*filter.Exchange) error { panic("boom") }
	fault := func(*filter.Exchange) error { return errors.New("disk on fire at /secret/path") }
	for name, tc := range map[string]struct {
		b, c  func(*filter.Exchange) error // of the head's second filter and the content's first
		trail []string
		want  int
		kind  string
	}{
		"all the way":      {nil, local, []string{"+a", "+b", "+c", "-c", "-b", "-a"}, 200, ""},
		"refused in head":  {refuse, local, []string{"+a", "+b", "-b", "-a"}, 403, "forbidden"},
		"answered in head": {local, refuse, []string{"+a", "+b", "-b", "-a"}, 200, ""},
		"panic":            {nil, explode, []string{"+a", "+b", "+c", "-c", "-b", "-a"}, 500, "internal"},
		"unforeseen error": {nil, fault, []string{"+a", "+b", "+c", "-c", "-b", "-a"}, 500, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			var trail []string
			p := func(name string, request func(*filter.Exchange) error) filter.Filter {
				return probe{name: name, trail: &trail, request: request}
			}
			chain := &filter.Chain{Headers: []filter.Filter{p("a", nil), p("b", tc.b)}, Body: []filter.Filter{p("c", tc.c), p("d", nil)}}
			ex := exchange("/v2/pods")
			if chain.RunHeaders(t.Context(), ex) && chain.RunBody(t.Context(), ex) {
				t.Fatal("the request went on to the platform")
			}
			chain.RunResponse(t.Context(), ex)
			if diff := cmp.Diff(tc.trail, trail); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			if ex.Response.Status != tc.want || ex.Event.Refusal != tc.kind || ex.Event.Status != tc.want {
				t.Errorf("status = %d, refusal = %q; want %d, %q", ex.Response.Status, ex.Event.Refusal, tc.want, tc.kind)
			}
			if body := string(ex.Response.Body); strings.Contains(body, "boom") || strings.Contains(body, "/secret") {
				t.Errorf("the inner cause is in the body: %s", body)
			}
			if tc.kind == "internal" && ex.Event.Cause == nil {
				t.Error("the event lacks the cause")
			}
		})
	}
}

// closer tells when it was closed.
type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

func TestAFaultOnTheWayOutReplacesTheAnswerAndClosesItsStream(t *testing.T) {
	var trail []string
	stream := &closer{Reader: strings.NewReader("half a secret")}
	chain := &filter.Chain{Headers: []filter.Filter{
		probe{name: "outer", trail: &trail},
		probe{name: "inner", trail: &trail, respond: func(*filter.Exchange) error { return errors.New("no") }},
	}}
	ex := exchange("/v2/pods")
	if !chain.RunHeaders(t.Context(), ex) {
		t.Fatal("refused")
	}
	ex.Response = &filter.Response{Status: http.StatusOK, Header: http.Header{}, Stream: stream, Relayed: true}
	chain.RunResponse(t.Context(), ex)
	if ex.Response.Status != http.StatusInternalServerError || !stream.closed {
		t.Errorf("status = %d, stream closed = %t; want 500 and closed", ex.Response.Status, stream.closed)
	}
	if diff := cmp.Diff([]string{"+outer", "+inner", "-inner", "-outer"}, trail); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// shout is a dialect for tests.
type shout struct{}

func (shout) Refuse(p *problem.Problem) *filter.Response {
	return &filter.Response{Status: p.Status, Header: http.Header{"Content-Type": {"text/shout"}}, Body: []byte(strings.ToUpper(p.Detail))}
}

func (shout) Priority(*filter.Exchange) (overload.Priority, bool) { return overload.Read, true }

func (s shout) ForDryRun(bool) filter.Translator { return s }

func TestRefusalsLeaveInTheCallersDialect(t *testing.T) {
	chain := &filter.Chain{Headers: []filter.Filter{filter.LimitSize{}}}
	for path, want := range map[string]string{"/v1/pods": "text/shout", "/v2/pods": problem.ContentType, "/elsewhere": problem.ContentType} {
		ex := exchange(path)
		ex.Ports.Translators = map[route.Dialect]filter.Translator{route.V1: shout{}}
		ex.In.Oversize = true
		if chain.RunHeaders(t.Context(), ex) {
			t.Fatal("not refused")
		}
		chain.RunResponse(t.Context(), ex)
		if got := ex.Response.Header.Get("Content-Type"); got != want || ex.Response.Status != 413 {
			t.Errorf("%s: %d %s, want 413 %s", path, ex.Response.Status, got, want)
		}
	}
}
