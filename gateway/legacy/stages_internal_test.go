package legacy

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
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// noon is when the tests' brownouts begin.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// shout is a dialect for tests.
type shout struct{}

func (shout) Refuse(p *translate.Response) *translate.Outgoing {
	return &translate.Outgoing{Status: p.Status, ContentType: "text/shout", Body: []byte(strings.ToUpper(p.Detail()))}
}

func (shout) Serve(context.Context, string, *translate.Incoming, translate.Caller) *translate.Outgoing {
	return &translate.Outgoing{Status: 200}
}

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

// probe answers with a function.
type probe func(*filter.Exchange) error

func (probe) Name() string { return "probe" }

func (p probe) Request(_ context.Context, ex *filter.Exchange) error { return p(ex) }

func done(ex *filter.Exchange) error {
	ex.Reply(&filter.Response{Status: http.StatusOK, Header: http.Header{}, Body: []byte("done")})
	return nil
}

// exchange is a request in a dialect of the translators.
func exchange(path string, r *usage.Recorder, fields func(*translate.Incoming) []string) *filter.Exchange {
	table, err := route.NewTable([]route.Route{
		{ID: "createPod", Dialect: route.V1, Method: http.MethodPost, Pattern: "/v1/pods"},
		{ID: "graphql", Dialect: route.GraphQL, Method: http.MethodPost, Pattern: "/graphql"},
	})
	if err != nil {
		panic(err)
	}
	ports := filter.Ports{Translators: map[route.Dialect]filter.Translator{
		route.V1: &translator{dialect: shout{}, usage: r}, route.GraphQL: &translator{dialect: shout{}, usage: r, fields: fields},
	}}
	return (&filter.Pipeline{Table: table, Ports: ports}).NewExchange(filter.Inbound{Door: "http", Method: http.MethodGet, Path: path, Header: http.Header{}})
}

// legacyChain has the stages about the legacy APIs and an answer behind them, for an organisation acme whose v1 is off from noon to one.
func legacyChain(message string) *filter.Chain {
	s := SchedulesOf(&settings.Config{Orgs: []settings.Org{{ID: "acme", Brownouts: []settings.Brownout{
		{Dialects: []settings.Dialect{"v1"}, From: noon, Until: noon.Add(time.Hour), Message: message},
	}}}})
	return &filter.Chain{Headers: []filter.Filter{RecordUse{s}}, Body: []filter.Filter{ApplyBrownouts{s}, probe(done)}}
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
			chain := legacyChain("")
			ex := exchange(tc.path, nil, nil)
			ex.In.Received = tc.now
			ex.Route = &route.Route{Public: tc.public}
			if tc.org != "" {
				ex.Caller, ex.Tenant = &identity.Caller{Org: tc.org, Key: "ann"}, &filter.Tenant{ID: tc.org}
			}
			if chain.RunHeaders(t.Context(), ex) {
				chain.RunBody(t.Context(), ex)
			}
			chain.RunResponse(t.Context(), ex)
			if ex.Response.Status != tc.status {
				t.Errorf("status = %d, want %d", ex.Response.Status, tc.status)
			}
			if got := ex.Response.Header.Get(HeaderBrownout); got != tc.header {
				t.Errorf("%s = %q, want %q", HeaderBrownout, got, tc.header)
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
		chain := legacyChain(message)
		ex := exchange("/v1/pods", nil, nil)
		ex.In.Received = noon.Add(59*time.Minute + 500*time.Millisecond)
		ex.Route, ex.Caller, ex.Tenant = &route.Route{ID: "listPods"}, &identity.Caller{Org: "acme", Key: "ann"}, &filter.Tenant{ID: "acme"}
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
func roots(in *translate.Incoming) []string { return strings.Fields(translate.Text(in.Body, "query")) }

func TestLegacyCallsAreNoted(t *testing.T) {
	answer := func(ex *filter.Exchange) error {
		ex.Reply(&filter.Response{Status: 201, Header: make(http.Header)})
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
			chain := &filter.Chain{Headers: []filter.Filter{RecordUse{}, probe(tc.request)}}
			ex := exchange(tc.path, r, roots)
			ex.Event.Agent, ex.Route, ex.Body.Doc, ex.Body.HasDoc = "launcher/1.2", tc.route, tc.doc, tc.doc != nil
			if tc.route != nil {
				ex.Event.Operation = tc.route.ID
			}
			if tc.key != "" {
				ex.Caller = &identity.Caller{Org: "acme", Key: tc.key}
			}
			if tc.tenant {
				ex.Tenant = &filter.Tenant{ID: "acme"}
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

// recorder is a dialect that records the request it receives.
type recorder struct {
	shout

	in *translate.Incoming
}

func (d *recorder) Serve(_ context.Context, _ string, in *translate.Incoming, _ translate.Caller) *translate.Outgoing {
	d.in = in
	return &translate.Outgoing{Status: 504}
}

func TestTheDialectKnowsTheCaller(t *testing.T) {
	d := new(recorder)
	ex := exchange("/v1/pods", nil, nil)
	ex.Ports.Translators[route.V1] = &translator{dialect: d, lists: overload.NewPool(1<<20, 1)}
	ex.Route, ex.Caller = &route.Route{ID: "createPod"}, &identity.Caller{Org: "acme", Key: "ann"}
	if err := (Translate{}).Request(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	if d.in.Account != "acme" || d.in.Caller != "ann" || ex.Response.Status != 504 {
		t.Errorf("the dialect received a call of %q of %q, and its answer has status %d; want ann of acme, 504", d.in.Caller, d.in.Account, ex.Response.Status)
	}
}

// The door's 401 and the dialects' have one text.
func TestMissingKeyText(t *testing.T) {
	if translate.MissingKeyText != filter.MissingKeyText {
		t.Errorf("dialects say %q, the chain %q", translate.MissingKeyText, filter.MissingKeyText)
	}
}
