package filter_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// noon is when the tests' brownouts begin.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func (shout) Brownout(_ string, _ map[string]string, text string) *translate.Outgoing {
	return &translate.Outgoing{Status: 503, ContentType: "text/shout", Body: []byte(strings.ToUpper(text))}
}

// ledger is a usage.Writer that keeps the rows it takes.
type ledger struct{ rows []usage.Row }

func (l *ledger) Write(_ context.Context, b usage.Batch) error {
	l.rows = append(l.rows, b.Rows...)
	return nil
}

func newUsage(t *testing.T, w usage.Writer) *usage.Recorder {
	t.Helper()
	r, err := usage.NewRecorder(usage.Deps{
		Writer: w, Now: func() time.Time { return noon }, Logger: slog.New(slog.DiscardHandler), Meter: noop.NewMeterProvider().Meter(""),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// acme is an organisation whose v1 is off from noon to one.
func acme(message string) *filter.Tenant {
	return &filter.Tenant{ID: "acme", Brownouts: map[route.Dialect]*translate.Schedule{route.V1: translate.NewSchedule([]translate.Brownout{
		{Dialects: []translate.Dialect{"v1"}, From: noon, Until: noon.Add(time.Hour), Message: message},
	}, "v1")}}
}

// legacyChain has the filters about retired interfaces and an answer behind
// them.
func legacyChain() *filter.Chain {
	return &filter.Chain{
		Headers: []filter.Filter{filter.RecordLegacyUse{}},
		Body: []filter.Filter{
			filter.Brownout{},
			probe{name: "translate", trail: new([]string), request: local},
		},
	}
}

func TestBrownouts(t *testing.T) {
	const announced = "2026-11-21T12:00:00Z/2026-11-21T13:00:00Z"
	for name, tc := range map[string]struct {
		path   string
		org    string // "" for no caller
		public bool
		now    time.Time
		status int
		header string
	}{
		"long before":          {"/v1/pods", "acme", false, noon.Add(-8 * 24 * time.Hour), 200, ""},
		"announced":            {"/v1/pods", "acme", false, noon.Add(-7*24*time.Hour + time.Second), 200, announced},
		"begun":                {"/v1/pods", "acme", false, noon, 503, announced},
		"last second":          {"/v1/pods", "acme", false, noon.Add(time.Hour - time.Second), 503, announced},
		"over":                 {"/v1/pods", "acme", false, noon.Add(time.Hour), 200, ""},
		"another organisation": {"/v1/pods", "globex", false, noon, 200, ""},
		"another dialect":      {"/graphql", "acme", false, noon, 200, ""},
		"v2":                   {"/v2/pods", "acme", false, noon, 200, ""},
		"how to migrate":       {"/v1/docs", "acme", true, noon, 200, ""},
		"a stranger":           {"/v1/docs", "", true, noon, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			chain := legacyChain()
			ex := exchange(tc.path)
			ex.In.Received = tc.now
			ex.Ports.Translators = map[route.Dialect]filter.Translator{route.V1: shout{}, route.GraphQL: shout{}}
			ex.Route = &route.Route{Public: tc.public}
			if tc.org != "" {
				ex.Caller, ex.Tenant = &identity.Caller{Org: tc.org, Key: "ann"}, &filter.Tenant{ID: tc.org}
			}
			if tc.org == "acme" {
				ex.Tenant = acme("")
			}
			if chain.RunHeaders(t.Context(), ex) {
				chain.RunBody(t.Context(), ex)
			}
			chain.RunResponse(t.Context(), ex)
			if ex.Response.Status != tc.status {
				t.Errorf("status = %d, want %d", ex.Response.Status, tc.status)
			}
			if got := ex.Response.Header.Get(filter.HeaderBrownout); got != tc.header {
				t.Errorf("%s = %q, want %q", filter.HeaderBrownout, got, tc.header)
			}
			if got := ex.Response.Header.Get("Retry-After"); (got != "") != (tc.status == 503) {
				t.Errorf("Retry-After = %q with status %d", got, tc.status)
			}
		})
	}
}

func TestABrownoutSaysWhyAndUntilWhen(t *testing.T) {
	for message, want := range map[string]string{
		"ask the platform team": "ASK THE PLATFORM TEAM",
		"":                      "THE V1 API IS RETIRED AND IS SWITCHED OFF UNTIL 2026-11-21T13:00:00Z AS ANNOUNCED; USE /V2",
	} {
		chain := legacyChain()
		ex := exchange("/v1/pods")
		ex.In.Received = noon.Add(59*time.Minute + 500*time.Millisecond)
		ex.Ports.Translators = map[route.Dialect]filter.Translator{route.V1: shout{}}
		ex.Route, ex.Caller, ex.Tenant = &route.Route{ID: "listPods"}, &identity.Caller{Org: "acme", Key: "ann"}, acme(message)
		if chain.RunHeaders(t.Context(), ex) {
			chain.RunBody(t.Context(), ex)
		}
		chain.RunResponse(t.Context(), ex)
		if got := string(ex.Response.Body); got != want {
			t.Errorf("text = %q, want %q", got, want)
		}
		if got := ex.Response.Header.Get("Retry-After"); got != "60" {
			t.Errorf("Retry-After = %q, want 60: 59.5 s rounded up", got)
		}
		if e := ex.Event; e.Refusal != "brownout" || e.Stage != "brownout" || e.Outcome != "refused" {
			t.Errorf("event = %q at %q, %q; want a brownout that was refused", e.Refusal, e.Stage, e.Outcome)
		}
	}
}

// roots names the operations of GraphQL documents in these tests.
type roots struct{}

func (roots) Fields(in *translate.Incoming) []string {
	return strings.Fields(translate.Text(in.Body, "query"))
}

func TestLegacyCallsAreNoted(t *testing.T) {
	answer := func(ex *filter.Exchange) error {
		ex.Response = &filter.Response{Status: 201, Header: make(http.Header)}
		ex.Event.Calls = []string{"createPod"}
		return nil
	}
	refuse := func(*filter.Exchange) error { return errors.New("broken") }
	row := func(key, dialect, op, status string) usage.Row {
		return usage.Row{
			RowKey: usage.RowKey{Key: key, Dialect: dialect, Operation: op, Agent: "launcher/1"},
			Totals: usage.Totals{Count: 1, First: noon, Last: noon, Statuses: map[string]int64{status: 1}},
		}
	}
	made := row("ann", "v1", "createPod", "2xx")
	made.V2 = map[string]int64{"createPod": 1}
	asked := made
	asked.RowKey = usage.RowKey{Key: "ann", Dialect: "graphql", Operation: "myself", Agent: "launcher/1"}
	nobody := asked
	nobody.Key = "anonymous"
	for name, tc := range map[string]struct {
		path    string
		route   *route.Route // nil when nothing matched
		key     string       // "" for no caller
		doc     any
		request func(*filter.Exchange) error
		want    []usage.Row
		tenant  bool // the organisation is known
	}{
		"v1":                 {"/v1/pods", &route.Route{ID: "createPod"}, "ann", nil, answer, []usage.Row{made}, true},
		"v1, failed":         {"/v1/pods", &route.Route{ID: "createPod"}, "ann", nil, refuse, []usage.Row{row("ann", "v1", "createPod", "5xx")}, true},
		"v1, no such path":   {"/v1/nope", nil, "ann", nil, refuse, []usage.Row{row("ann", "v1", "unmatched", "5xx")}, true},
		"v1, a stranger":     {"/v1/docs", &route.Route{ID: "getDocs", Public: true}, "", nil, answer, nil, false},
		"graphql":            {"/graphql", &route.Route{ID: "graphql"}, "ann", map[string]any{"query": "myself"}, answer, []usage.Row{asked}, true},
		"graphql, unread":    {"/graphql", &route.Route{ID: "graphql"}, "ann", nil, refuse, []usage.Row{row("ann", "graphql", "unread", "5xx")}, true},
		"graphql, no key":    {"/graphql", &route.Route{ID: "graphql", Public: true}, "", map[string]any{"query": "myself"}, answer, []usage.Row{nobody}, true},
		"graphql, a no-path": {"/graphql/x", nil, "ann", nil, refuse, []usage.Row{row("ann", "graphql", "unmatched", "5xx")}, true},
		"v2":                 {"/v2/pods", &route.Route{ID: "createPod"}, "ann", nil, answer, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			kept := new(ledger)
			r := newUsage(t, kept)
			chain := &filter.Chain{Headers: []filter.Filter{
				filter.RecordLegacyUse{Names: map[route.Dialect]filter.OperationNamer{route.GraphQL: roots{}}},
				probe{name: "serve", trail: new([]string), request: tc.request},
			}}
			ex := exchange(tc.path)
			ex.Ports.Usage = r
			ex.Event.Agent, ex.Route, ex.Body.Doc, ex.Body.HasDoc = "launcher/1.2", tc.route, tc.doc, tc.doc != nil
			if tc.route != nil {
				ex.Event.Operation = tc.route.ID
			}
			if tc.key != "" {
				ex.Caller = &identity.Caller{Org: "acme", Key: tc.key}
			}
			if tc.tenant {
				ex.Tenant = acme("")
			}
			if chain.RunHeaders(t.Context(), ex) {
				t.Fatal("the request went on")
			}
			chain.RunResponse(t.Context(), ex)
			if err := r.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, kept.rows); diff != "" {
				t.Errorf("noted (-want +got):\n%s", diff)
			}
		})
	}
}
