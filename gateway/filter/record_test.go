package filter

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tollgate-dev/tollgate/policies"
)

// A record stays as it is while its exchange goes on, and holds on to nothing of the
// configuration, nor of the body.
func TestARecordStandsByItself(t *testing.T) {
	p := &Pipeline{Chain: new(Chain), Callers: new(Callers)}
	ex := p.NewExchange(Inbound{Method: http.MethodPost, Path: "/v2/pods", Query: "secret=1", Header: http.Header{"Authorization": {"Bearer s"}}})
	ex.Tenant, ex.Body.Doc, ex.Evaluation.Input = new(Tenant), "body", &policies.Input{Cost: policies.Cost{Known: true, GPUs: 2}, Request: policies.Request{Body: "body"}}
	ex.enterStage("size")
	r := ex.Snapshot()
	ex.enterStage("late")
	ex.Event.Status = http.StatusBadGateway
	if request, _ := r.Stages(); !cmp.Equal(request, []string{"size"}) || r.Event.Status != 0 {
		t.Errorf("the record has the stages %q and the status %d of later", request, r.Event.Status)
	}
	r.enterStage("other")
	if request, _ := ex.Stages(); !cmp.Equal(request, []string{"size", "late"}) {
		t.Errorf("the exchange has the stages %q", request)
	}
	if r.pipeline != nil || r.Ports != nil || r.Tenant != nil || r.Body.Doc != nil || r.In.Header != nil || r.In.Query != "" || r.Evaluation.Input.Request.Body != nil {
		t.Errorf("the record holds more than it is to: %+v", r)
	}
	if r.Evaluation.Input.Cost.GPUs != 2 {
		t.Errorf("the record has lost the cost: %+v", r.Evaluation.Input.Cost)
	}
	ex.Evaluation.Input = &policies.Input{Cost: policies.Cost{Known: true}}
	if r := ex.Snapshot(); r.Evaluation.Input != nil {
		t.Errorf("there is nothing to tell of %+v", r.Evaluation.Input)
	}
}

// A record keeps the fields named here and no others: explanations lose a new field of
// the exchange, its request or a reservation until Record copies it.
func TestARecordHasTheFieldsThatExplanationsRead(t *testing.T) {
	ex := newExchange(stagesOfRequest)
	event := ex.Event
	fill(t, reflect.ValueOf(ex).Elem())
	fill(t, reflect.ValueOf(event).Elem())
	ex.Event, ex.Calls = event, []*Exchange{newExchange(stagesOfCall)}
	ex.Cost.Reservation = new(Reservation)
	fill(t, reflect.ValueOf(ex.Cost.Reservation).Elem())
	r := ex.Snapshot()
	for _, c := range []struct {
		name      string
		got, from any
		want      []string
	}{
		{"exchange", *r, *ex, []string{
			"In", "Dialect", "Operation", "Params", "Caller", "Limit", "Event", "Sent", "Adopted", "Calls", "Progress", "Body", "Access", "Evaluation", "Cost",
		}},
		{"path", r.Progress, ex.Progress, []string{"stages", "callStart", "clock"}},
		{"body", r.Body, ex.Body, []string{"Labels", "removedVars", "removedHeaders"}},
		{"access", r.Access, ex.Access, []string{"hiddenNotes"}},
		{"judged", r.Evaluation, ex.Evaluation, []string{"Input", "Verdict"}},
		{"money", r.Cost, ex.Cost, []string{"Reservation"}},
		{"request", r.In, ex.In, []string{"Path"}},
		{"reservation", *r.Cost.Reservation, *ex.Cost.Reservation, []string{"Reservation", "Quote", "ResourceKind", "Admitted", "Current"}},
		{"reservation in the ledger", r.Cost.Reservation.Reservation, ex.Cost.Reservation.Reservation, []string{"Resource", "After", "Free", "Waived", "Metadata"}},
		{"description of the resource", r.Cost.Reservation.Metadata, ex.Cost.Reservation.Metadata, []string{"StopAt", "EndAt"}},
		{"quote", r.Cost.Reservation.Quote, ex.Cost.Reservation.Quote, []string{"Refused", "Ceilings", "Tightest"}},
	} {
		if empty := fields(c.from, true); len(empty) > 0 {
			t.Errorf("%s: the test has not filled %q", c.name, empty)
		}
		if diff := cmp.Diff(c.want, fields(c.got, false), cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("%s: fields of the record (-want +got):\n%s", c.name, diff)
		}
	}
}

// fields returns the names of a struct's fields that are zero, or that are not.
func fields(v any, zero bool) (names []string) {
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		if s.Field(i).IsZero() == zero {
			names = append(names, s.Type().Field(i).Name)
		}
	}
	return names
}

// fill sets every field below v to something. Pointers lead to zero values.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(t, reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()) // fields that are not exported, too
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), nil))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Interface:
		for _, some := range []any{errors.New("x"), http.NoBody} {
			if reflect.TypeOf(some).Implements(v.Type()) {
				v.Set(reflect.ValueOf(some))
				return
			}
		}
		t.Fatalf("nothing is known that is a %s", v.Type())
	default:
		t.Fatalf("no value is known of a %s", v.Type())
	}
}
