package filter

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies"
)

// A record stays as it is while its exchange goes on, and holds on to nothing of the
// configuration, nor of the body.
func TestARecordStandsByItself(t *testing.T) {
	p := &Pipeline{Chain: new(Chain), Callers: new(Callers)}
	ex := p.NewExchange(Inbound{Method: http.MethodPost, Path: "/v2/pods", Query: "secret=1", Header: http.Header{"Authorization": {"Bearer s"}}})
	ex.Tenant, ex.Doc, ex.Input = new(Tenant), "body", &policies.Input{Cost: policies.Cost{Known: true, GPUs: 2}, Request: policies.Request{Body: "body"}}
	ex.enter("size")
	r := ex.Record()
	ex.enter("late")
	ex.Event.Status = http.StatusBadGateway
	if request, _ := r.Stages(); !cmp.Equal(request, []string{"size"}) || r.Event.Status != 0 {
		t.Errorf("the record has the stages %q and the status %d of later", request, r.Event.Status)
	}
	r.enter("other")
	if request, _ := ex.Stages(); !cmp.Equal(request, []string{"size", "late"}) {
		t.Errorf("the exchange has the stages %q", request)
	}
	if r.callers != nil || r.Ports != nil || r.Tenant != nil || r.Doc != nil || r.In.Header != nil || r.In.Query != "" || r.Input.Request.Body != nil {
		t.Errorf("the record holds more than it is to: %+v", r)
	}
	if r.Input.Cost.GPUs != 2 {
		t.Errorf("the record has lost the cost: %+v", r.Input.Cost)
	}
	ex.Input = &policies.Input{Cost: policies.Cost{Known: true}}
	if r := ex.Record(); r.Input != nil {
		t.Errorf("there is nothing to tell of %+v", r.Input)
	}
}
