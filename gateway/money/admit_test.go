package money

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// fakeLedger is a ledger of tests: it keeps the reservations it was asked for.
type fakeLedger struct {
	filter.Ledger

	asked []ledger.Reservation
	err   error
}

func (l *fakeLedger) Reserve(_ context.Context, _ string, _ *ledger.Plan, r ledger.Reservation) (ledger.Quote, error) {
	l.asked = append(l.asked, r)
	return ledger.Quote{Owner: r.Owner}, l.err
}

// pod is a pod with some GPUs, "" for none.
func pod(t *testing.T, gpus string) any {
	t.Helper()
	if gpus == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(`{"id":"p","cloud":"SECURE","image":"img","gpu":{"id":"L4","count":` + gpus + `}}`))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// judged is an exchange as it arrives at the stage, of a pod that has and would have some GPUs.
func judged(t *testing.T, l *fakeLedger, operation, current, after string) *filter.Exchange {
	t.Helper()
	prices := catalog.NewSnapshot(catalog.Lists{GPUs: []catalog.GPU{{
		ID: "L4", Secure: catalog.Offer{Offered: true, MaxCount: 8, Price: catalog.Price{PerHour: 1_000_000, Known: true}},
	}}}, catalog.Rates{}, time.Unix(0, 0))
	in := &policies.Input{Catalog: prices, Resource: policies.Resource{Current: pod(t, current), After: pod(t, after)}}
	ex := &filter.Exchange{
		Operation: &schema.Operation{ID: operation}, Params: map[string]string{"id": "p"},
		Ports: &filter.Ports{Ledger: l}, Event: new(telemetry.Event), Caller: &identity.Caller{Org: "acme", Team: "research", Key: "ann"},
		Tenant: &filter.Tenant{ID: "acme", Budgets: &ledger.Plan{}},
	}
	ex.Evaluation.Input = in
	return ex
}

// Every call that can change what a pod takes is reserved with the most that the pod may take, for its caller. Only calls that raise it are
// refused if the ledger cannot be asked.
func TestCallsAreReserved(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		operation, current, after string

		gpus, burn  int64 // that are reserved
		free, fails bool
	}{
		"a create":             {operation: "createPod", after: "2", gpus: 2, burn: 2_000_000, fails: true},
		"an update to more":    {operation: "updatePod", current: "1", after: "3", gpus: 3, burn: 3_000_000, fails: true},
		"an update to less":    {operation: "updatePod", current: "3", after: "1", gpus: 1, burn: 1_000_000, free: true},
		"an update to as much": {operation: "updatePod", current: "2", after: "2", gpus: 2, burn: 2_000_000},
		"a delete":             {operation: "deletePod", current: "2", free: true},
	} {
		for _, away := range []bool{false, true} {
			l := new(fakeLedger)
			if away {
				l.err = errors.New("away")
			}
			ex := judged(t, l, tt.operation, tt.current, tt.after)
			err := new(Reserve).Request(t.Context(), ex)
			if p, refused := errors.AsType[*problem.Problem](err); refused != (away && tt.fails) || refused && p.Kind != problem.LedgerUnavailable {
				t.Errorf("%s, ledger away %t: %v", name, away, err)
			}
			if len(l.asked) != 1 {
				t.Errorf("%s: %d reservations, want 1", name, len(l.asked))
				continue
			}
			r := l.asked[0]
			if r.After[ledger.GPUs] != tt.gpus || r.After[ledger.Burn] != tt.burn || r.Free != tt.free || r.Owner != (ledger.Owner{Team: "research", Key: "ann"}) {
				t.Errorf("%s: reserved %+v", name, r)
			}
		}
	}
}

// Calls that change no amounts are not in the ledger.
func TestFreeCallsAreNotReserved(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"getPod", "listPods", "updateTemplate", "updateCluster"} {
		l := new(fakeLedger)
		ex := judged(t, l, operation, "1", "1")
		if err := new(Reserve).Request(t.Context(), ex); err != nil || len(l.asked) > 0 || ex.Cost.Reservation != nil {
			t.Errorf("%s: %v, reserved %+v", operation, err, l.asked)
		}
	}
}
