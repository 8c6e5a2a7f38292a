package filter

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/translate"
)

// backgroundTranslator is a translator that goes on after it has answered.
type backgroundTranslator struct {
	translate.Caller
	in *translate.Incoming
}

func (l *backgroundTranslator) Refuse(*translate.Response) *translate.Outgoing {
	return &translate.Outgoing{Status: 500}
}

func (l *backgroundTranslator) Brownout(string, map[string]string, string) *translate.Outgoing {
	return &translate.Outgoing{Status: 503}
}

func (l *backgroundTranslator) Serve(_ context.Context, _ string, in *translate.Incoming, call translate.Caller) *translate.Outgoing {
	l.Caller, l.in = call, in
	return &translate.Outgoing{Status: 504}
}

// TestCallsAfterTheAnswer: the record of a request is written when it is
// answered, and a call that outlives it does not touch it.
func TestCallsAfterTheAnswer(t *testing.T) {
	l := new(backgroundTranslator)
	f := &Translate{Lists: NewMemory(1 << 20)}
	table, err := route.NewTable([]route.Route{{ID: "createPod", Dialect: route.V1, Method: "POST", Pattern: "/v1/pods"}})
	if err != nil {
		t.Fatal(err)
	}
	p := &Pipeline{Table: table, Ports: Ports{Translators: map[route.Dialect]Translator{route.V1: l}}}
	ex := p.NewExchange(Inbound{Method: "POST", Path: "/v1/pods"})
	ex.Route, ex.Caller = &route.Route{ID: "createPod"}, &identity.Caller{Org: "acme", Key: "ann"}
	if err := f.Request(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	if l.in.Account != "acme" || l.in.Caller != "ann" {
		t.Errorf("the translator was told of %q of %q, want ann of acme", l.in.Caller, l.in.Account)
	}
	written := *ex.Event
	c, ok := l.Caller.(*calls)
	if !ok {
		t.Fatalf("caller is a %T", l.Caller)
	}
	c.end(&Exchange{Response: new(Response), Event: &telemetry.Event{Denied: []string{"p"}, Priced: true, UpstreamStatus: 201, Outcome: telemetry.OutcomeRefused}})
	if diff := cmp.Diff(written, *ex.Event, cmpopts.IgnoreUnexported(telemetry.Event{})); diff != "" || len(ex.Calls) > 0 {
		t.Errorf("the event changed after the answer (-written +now):\n%s", diff)
	}
}

// A found resource is noted on the call that made it; see also package once.
func TestFoundResources(t *testing.T) {
	made := &Exchange{Adopted: "p1", Sent: SentUnanswered, Event: &telemetry.Event{}}
	if got, want := Explainers(nil).Notes(made, StageDispatch), []string{"p1 was created anyway and found afterwards"}; !cmp.Equal(got, want) {
		t.Errorf("notes %q, want %q", got, want)
	}
}
