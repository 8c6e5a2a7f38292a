package explain_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// novelty is a filter that this package has never heard of.
type novelty struct{ refuse bool }

func (novelty) Name() string { return "novelty" }

func (f novelty) Request(_ context.Context, ex *filter.Exchange) error {
	if f.refuse {
		return problem.Forbidden.New("not on a Sunday")
	}
	return nil
}

func (novelty) Notes(ex *filter.Exchange, _ string) []string {
	return []string{"seen by the key " + ex.Caller.Key}
}

// called stands for the stages that find out who calls what.
type called struct {
	caller *identity.Caller
	op     *schema.Operation
}

func (called) Name() string { return "called" }

func (f called) Request(_ context.Context, ex *filter.Exchange) error {
	ex.Caller, ex.Operation = f.caller, f.op
	return nil
}

// refusing is a Sender that must not be used.
type refusing struct{ t *testing.T }

func (s refusing) Send(context.Context, *filter.Exchange) (func(), error) {
	s.t.Error("a dry run sent something")
	return func() {}, nil
}

// A filter is explained without an edit to this package: in a dry run, and in
// the record of an exchange that took place.
func TestAFilterIsExplainedByItself(t *testing.T) {
	now := func() time.Time { return time.Unix(1000, 0) }
	op := &schema.Operation{ID: "getPod", Method: http.MethodGet, Path: "/v2/pods/{id}", SuccessStatus: 200}
	caller := &identity.Caller{Org: "acme", Key: "ann"}
	for name, tc := range map[string]struct {
		refuse  bool
		verdict explain.Verdict
		want    explain.Stage
	}{
		"passes":  {false, explain.Allowed, explain.Stage{Name: "novelty", Result: "passed", Notes: []string{"seen by the key ann"}}},
		"refuses": {true, explain.Refused, explain.Stage{Name: "novelty", Result: "refused", Notes: []string{"seen by the key ann", "not on a Sunday"}}},
	} {
		t.Run(name, func(t *testing.T) {
			history := explain.NewHistory(10, nil)
			pipeline := &filter.Pipeline{
				Chain: &filter.Chain{Headers: []filter.Filter{filter.AssignIDs{}, called{caller, op}}, Call: []filter.Filter{novelty{tc.refuse}}},
				Ports: filter.Ports{Observer: history, Sender: refusing{t}},
			}
			in := filter.Inbound{Method: http.MethodGet, Path: "/v2/pods/p1", Header: http.Header{}, Received: now()}
			dry := (&explain.DryRun{Pipeline: pipeline, Now: now}).Run(t.Context(), in, caller)

			ex := pipeline.NewExchange(in)
			if pipeline.Chain.RunHeaders(t.Context(), ex) && pipeline.Chain.RunBody(t.Context(), ex) {
				ex.SetUpstreamResponse(http.StatusOK, http.Header{})
			}
			pipeline.Chain.RunResponse(t.Context(), ex)
			recorded, ok := history.Find(pipeline.Chain, ex.DecisionID)
			if !ok {
				t.Fatal("the exchange was not kept")
			}
			for kind, x := range map[string]*explain.Report{"dry": dry, "recorded": recorded} {
				if x.Verdict != tc.verdict || len(x.Calls) != 1 {
					t.Fatalf("%s: %s with %d calls, want %s with one", kind, x.Verdict, len(x.Calls), tc.verdict)
				}
				i := slices.IndexFunc(x.Calls[0].Stages, func(s explain.Stage) bool { return s.Name == "novelty" })
				if i < 0 {
					t.Fatalf("%s: the stage is missing: %+v", kind, x.Calls[0].Stages)
				}
				got := x.Calls[0].Stages[i]
				if kind == "dry" && got.StartMs+got.Ms != 0 {
					t.Errorf("a dry run has measured %v ms", got.Ms)
				}
				got.StartMs, got.Ms = 0, 0
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", kind, diff)
				}
			}
		})
	}
}
