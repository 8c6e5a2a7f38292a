package filter

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	meternoop "go.opentelemetry.io/otel/metric/noop"
	tracernoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// onceMore are policies that want another name, and deny a case's call or fail.
type onceMore struct {
	changes bool
	deny    []policies.Violation
	err     error
	// priced lists the policies that read prices.
	priced []string
}

func (p *onceMore) Decide(_ context.Context, _ string, in *policies.Input) (policies.Decision, error) {
	d := policies.Decision{Revision: "r1", Deny: p.deny}
	body, _ := in.Request.Body.(map[string]any)
	if p.changes && body["name"] != "changed" {
		d.Mutate = []policies.Mutation{{Policy: "names", Pointer: "/name", Op: policies.OpForce, Value: "changed"}}
	}
	return d, p.err
}

func (p *onceMore) PoliciesReading(_ string, path ...string) []string {
	if path[0] == "cost" {
		return p.priced
	}
	return nil
}

// shelf is a Sender that has one template.
type shelf struct{}

func (shelf) Send(_ context.Context, ex *Exchange) (func(), error) {
	ex.SetUpstreamResponse(http.StatusOK, http.Header{})
	ex.Response.Body = []byte(`{"id":"t1","public":false,"image":"t:1","disk":20,"args":"","ports":[],"env":{"A":"t"},"registry":null}`)
	return func() {}, nil
}

// unpriced is a Prices that knows no price, or cannot be read.
type unpriced struct{ err error }

func (p unpriced) Snapshot(context.Context, string) (*catalog.Snapshot, error) { return nil, p.err }

func (unpriced) ObserveCharge(string, map[string]any) {}

func newRecorder(t *testing.T) *telemetry.Recorder {
	t.Helper()
	r := telemetry.NewRecorder(slog.New(slog.DiscardHandler), tracernoop.NewTracerProvider(), meternoop.NewMeterProvider(), time.Now)
	return r
}

// A body is held against the schema once as it came, once for each change, and
// once as it is sent if a template's settings were written into it.
func TestBodiesAreHeldAgainstTheSchemaOnce(t *testing.T) {
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	const plain, templated = `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`, `{"name":"a","templateId":"t1","gpu":{"id":"NVIDIA L4"}}`
	all := []string{"validate", "resolve state", "evaluate policies"}
	for name, tc := range map[string]struct {
		body   string
		judge  onceMore
		checks int
		stages []string
		fails  bool
	}{
		"plain":              {plain, onceMore{}, 1, all, false},
		"changed":            {plain, onceMore{changes: true}, 2, all, false},
		"templated":          {templated, onceMore{}, 2, all, false},
		"templated, denied":  {templated, onceMore{deny: []policies.Violation{{Policy: "p"}}}, 1, all, true},
		"templated, changed": {templated, onceMore{changes: true}, 3, all, false},
		"not valid":          {`{"name":1}`, onceMore{}, 1, all[:1], true},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := newRecorder(t)
			judge := &EvaluatePolicies{
				Policies: &tc.judge, Template: api.Operation("getTemplate"), Templates: api.Operation("listTemplates"),
				Reader: &Reader{Recorder: recorder}, Recorder: recorder,
			}
			p := &Pipeline{Chain: &Chain{Call: []Filter{judge}}, Ports: Ports{Sender: shelf{}, ReadCache: NewReadCache(time.Now), Prices: unpriced{}, Approvals: unapproved{}}}
			ex := p.NewExchange(Inbound{Method: http.MethodPost, Path: "/v2/pods"})
			ex.Operation, ex.Caller, ex.Tenant = api.Operation("createPod"), &identity.Caller{Org: "acme"}, &Tenant{ChangesBodies: tc.judge.changes}
			ex.Body.Doc, ex.Body.HasDoc = decoded(t, tc.body), true
			if passed := p.Chain.run(t.Context(), ex, partCall); passed == tc.fails {
				t.Fatalf("passed: %t, %s", passed, ex.Event.Detail)
			}
			if ex.Body.checks != tc.checks {
				t.Errorf("the schema was asked %d times, want %d", ex.Body.checks, tc.checks)
			}
			if _, got := ex.Stages(); !cmp.Equal(got, tc.stages) {
				t.Errorf("stages %q, want %q", got, tc.stages)
			}
		})
	}
}

// A call is refused if the policies fail. If the price list is unavailable, a call is refused for that only if all its denials
// may be due to it.
func TestRefusalsWithoutAVerdict(t *testing.T) {
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	dear, named := policies.Violation{Policy: "price_ceiling"}, policies.Violation{Policy: "naming"}
	priced := []string{"price_ceiling"}
	for name, tc := range map[string]struct {
		judge  onceMore
		prices error
		want   problem.Kind // "" if the call is allowed
	}{
		"allowed":                           {onceMore{}, nil, ""},
		"denied":                            {onceMore{deny: []policies.Violation{dear}, priced: priced}, nil, problem.Forbidden},
		"failed":                            {onceMore{err: errors.New("conflict")}, nil, problem.PolicyUnavailable},
		"allowed without prices":            {onceMore{priced: priced}, catalog.ErrUnavailable, ""},
		"denied by price without prices":    {onceMore{deny: []policies.Violation{dear}, priced: priced}, catalog.ErrUnavailable, problem.PriceUnavailable},
		"denied by name without prices":     {onceMore{deny: []policies.Violation{named}, priced: priced}, catalog.ErrUnavailable, problem.Forbidden},
		"denied by both without prices":     {onceMore{deny: []policies.Violation{dear, named}, priced: priced}, catalog.ErrUnavailable, problem.Forbidden},
		"failed without prices":             {onceMore{err: errors.New("conflict"), priced: priced}, catalog.ErrUnavailable, problem.PolicyUnavailable},
		"the list of prices cannot be read": {onceMore{}, errors.New("broken"), problem.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := newRecorder(t)
			judge := &EvaluatePolicies{Policies: &tc.judge, Reader: &Reader{Recorder: recorder}, Recorder: recorder}
			p := &Pipeline{Chain: &Chain{Call: []Filter{judge}}, Ports: Ports{Prices: unpriced{tc.prices}, Approvals: unapproved{}}}
			ex := p.NewExchange(Inbound{Method: http.MethodPost, Path: "/v2/pods"})
			ex.Operation, ex.Caller, ex.Tenant = api.Operation("createPod"), &identity.Caller{Org: "acme"}, new(Tenant)
			ex.Body.Doc, ex.Body.HasDoc = decoded(t, `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`), true
			if passed := p.Chain.run(t.Context(), ex, partCall); passed != (tc.want == "") || ex.Event.Refusal != string(tc.want) {
				t.Errorf("passed %t, refused as %q (%s); want %q", passed, ex.Event.Refusal, ex.Event.Detail, tc.want)
			}
		})
	}
}

// unapproved is an Approvals without approvals.
type unapproved struct{}

func (unapproved) Approve(context.Context, *Exchange, []policies.Violation, *problem.Problem) []policies.Excepted {
	return nil
}

func (unapproved) GiveBack(context.Context, *Exchange) {}
