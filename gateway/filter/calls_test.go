package filter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// TestCallsAfterTheAnswer: the record of a request is written when it is
// answered, and a call that outlives it does not touch it.
func TestCallsAfterTheAnswer(t *testing.T) {
	ex := new(Pipeline).NewExchange(Inbound{Method: "POST", Path: "/v1/pods"})
	var c Calls
	c.Begin(ex, overload.NewPool(1<<20, 1))
	c.Finish(&Response{Status: 504}, []string{"createPod"}, nil)
	written := *ex.Event
	c.end(&Exchange{Response: new(Response), Event: &telemetry.Event{Denied: []string{"p"}, Priced: true, UpstreamStatus: 201, Outcome: telemetry.OutcomeRefused}})
	if diff := cmp.Diff(written, *ex.Event, cmpopts.IgnoreUnexported(telemetry.Event{})); diff != "" || len(ex.Calls) > 0 {
		t.Errorf("the event changed after the answer (-written +now):\n%s", diff)
	}
}

// A found resource is noted on the call that made it; see also package once.
func TestFoundResources(t *testing.T) {
	made := &Exchange{Adopted: "p1", Sent: SentUnanswered, Event: &telemetry.Event{}}
	if got, want := Explainers(nil).Notes(made, StageDispatch), []string{"p1 was found after the response to the call was lost"}; !cmp.Equal(got, want) {
		t.Errorf("notes %q, want %q", got, want)
	}
}
