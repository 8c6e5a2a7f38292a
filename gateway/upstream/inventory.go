package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Listed is a resource in a list of the platform.
type Listed struct {
	ledger.PlatformResource

	Record map[string]any
}

// Inventory lists all resources of the given kinds with their amounts for the given plan. For the parameter known, see [Account.Records].
func (c *Account) Inventory(
	ctx context.Context, org string, plan *ledger.Plan, kinds, known func(operation.Kind) bool, prices *catalog.Snapshot,
) ([]ledger.PlatformResource, error) {
	all, err := c.Resources(ctx, org, plan, kinds, known, prices)
	if err != nil {
		return nil, err
	}
	found := make([]ledger.PlatformResource, len(all))
	for i, it := range all {
		found[i] = it.PlatformResource
	}
	return found, nil
}

// Resources is like [Account.Inventory], but the result includes the platform's records.
func (c *Account) Resources(
	ctx context.Context, org string, plan *ledger.Plan, kinds, known func(operation.Kind) bool, prices *catalog.Snapshot,
) ([]Listed, error) {
	all, err := c.Records(ctx, org, kinds, known)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.measure(ctx, org, plan, &all[i], plan.Endpoints == ledger.WorkersActive || plan.Idle.For > 0, prices); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// measure sets the amounts of a resource for the given plan. If scan is true, it requests the number of workers of an endpoint.
func (c *Account) measure(ctx context.Context, org string, plan *ledger.Plan, it *Listed, scan bool, prices *catalog.Snapshot) (err error) {
	var workers int64
	if it.Kind == operation.KindEndpoint && scan {
		if workers, it.Use.Busy, err = c.workers(ctx, org, it.ID); err != nil {
			return err
		}
	}
	it.Amounts, it.Priced = plan.Footprint(it.Kind, it.Record, workers, prices)
	it.LowerRemaining()
	it.Implausible = catalog.ImplausibleMember(it.Kind, it.Record)
	if listed := prices.ListPrices(); listed != prices {
		a, _ := plan.Footprint(it.Kind, it.Record, workers, listed)
		it.ListRate = a[ledger.Burn]
	}
	it.Use.Workers, it.Use.Burn = workers, it.Amounts[ledger.Burn]
	if it.Kind == operation.KindEndpoint {
		active := ledger.Active(it.Record, workers, prices)
		it.Use.Burn, it.WorkersUnknown = active[ledger.Burn], !scan
	}
	return nil
}

// workers returns the number of workers of an endpoint and the number of busy ones.
func (c *Account) workers(ctx context.Context, org, endpoint string) (all, busy int64, err error) {
	workers, _, err := c.items(ctx, org, at("/v2/serverless/{id}/workers", endpoint), "workers")
	if err != nil {
		return 0, 0, err
	}
	for _, w := range workers {
		worker, _ := w.(map[string]any)
		if status := worker["status"]; status != "IDLE" && status != "UNHEALTHY" {
			busy++
		}
	}
	return int64(len(workers)), busy, nil
}

// Records lists all resources of the given kinds. An older platform does not have some optional kinds; their lists are empty. But if known
// returns true for a kind, which means that the ledger already counts resources of this kind, a missing list is an error.
func (c *Account) Records(ctx context.Context, org string, kinds, known func(operation.Kind) bool) ([]Listed, error) {
	var all []Listed
	mounted := make(map[any]bool)
	for _, op := range c.Lists {
		row, _ := operation.Lookup(op.ID)
		if !kinds(row.Kind) {
			continue
		}
		items, date, err := c.items(ctx, org, op.Path, row.ListMember)
		if row.Optional && meansEmpty(err, ledger.IsCounted(row.Kind), known(row.Kind)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			record, _ := item.(map[string]any)
			id, _ := record["id"].(string)
			if id == "" {
				return nil, fmt.Errorf("%w: GET %s returned an item without an id", ErrUnreachable, op.Path)
			}
			for _, volume := range volumes(record) {
				mounted[volume] = true
			}
			if record["cluster"] != nil || catalog.SandboxEnded(row.Kind, record) {
				continue // belongs to a cluster, or has ended
			}
			all = append(all, listed(row.Kind, record, date))
		}
	}
	for i := range all {
		all[i].Use.Mounted = mounted[all[i].ID]
	}
	return all, nil
}

// items returns the items of a list and the time of the response.
func (c *Account) items(ctx context.Context, org, target, member string) ([]any, time.Time, error) {
	doc, date, err := c.list(ctx, org, target, member)
	if err != nil {
		return nil, date, err
	}
	object, _ := doc.(map[string]any)
	items, ok := object[member].([]any)
	if !ok {
		return nil, date, fmt.Errorf("%w: response to GET %s does not contain the list %q", ErrUnreachable, target, member)
	}
	return items, date, nil
}

// EndedSandbox returns the sandbox that the given call has created, if the sandbox has terminated or failed. The usage and cost of the
// returned sandbox are zero. EndedSandbox returns nil if no such sandbox exists.
func (c *Account) EndedSandbox(ctx context.Context, org, call string) (*ledger.PlatformResource, error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	for _, state := range []string{"TERMINATED", "FAILED"} {
		query := url.Values{"state": {state}, "labels": {operation.CallLabel + "=" + call}}
		items, date, err := c.items(ctx, org, "/v2/sandboxes?"+query.Encode(), "sandboxes")
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			record, _ := item.(map[string]any)
			if it := listed(operation.KindSandbox, record, date); it.ID != "" && it.Call == call && !it.Ended.IsZero() {
				return &it.PlatformResource, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // no such sandbox
}

// meansEmpty reports whether an error of an optional list means that the list is empty: an older platform does not have the kind, or the
// platform key may not list it. A list of counted resources that cannot be read is not empty.
func meansEmpty(err error, counts, known bool) bool {
	return errors.Is(err, errNotFound) && (!counts || !known) || errors.Is(err, ErrForbidden) && !counts
}

// listed converts a record that the platform returned at the given time.
func listed(kind operation.Kind, record map[string]any, date time.Time) Listed {
	f := ledger.PlatformResource{
		Kind: kind, Call: operation.Label(record, operation.CallLabel), Owner: ledger.LabelledOwner(record),
		Print: ledger.Describe(kind, record), Age: since(record, "createdAt", date), Stoppable: stoppable(record),
	}
	f.ID, _ = record["id"].(string)
	f.Name, _ = record["name"].(string)
	f.GPU, f.DataCenter = ledger.Machine(kind, record)
	switch kind { //nolint:exhaustive // other kinds have no further fields
	case operation.KindPod:
		f.Use = podUse(record, date)
	case operation.KindSandbox:
		f.Use.Inactive, f.Stoppable = since(record, "lastActivityAt", date) > time.Minute.Milliseconds(), true
		f.ReadTimes(record, date)
	}
	return Listed{f, record}
}

// stoppable reports whether a resource can be stopped according to its record.
func stoppable(record map[string]any) bool {
	actions, _ := record["actions"].([]any)
	return record["locked"] != true && slices.Contains(actions, any("stop"))
}

// StopPod stops a pod and returns its remaining amounts.
func (c *Account) StopPod(ctx context.Context, org, id string, prices *catalog.Snapshot) (ledger.Amounts, error) {
	target := "/v2/pods/" + url.PathEscape(id) + "/action"
	record, _, err := c.request(ctx, Request{Org: org, Method: http.MethodPost, Target: target, Body: []byte(`{"action":"stop"}`)})
	if err != nil {
		return ledger.Amounts{}, err
	}
	pod, _ := record.(map[string]any)
	amounts, _ := ledger.Footprint(operation.KindPod, pod, prices)
	return amounts, nil
}

// Delete deletes a resource. It also returns nil if the resource does not exist.
func (c *Account) Delete(ctx context.Context, org string, kind operation.Kind, id string) error {
	_, _, err := c.read(ctx, Request{Org: org, Method: http.MethodDelete, Target: at(c.Gets[kind].Path, id)})
	if errors.Is(err, errNotFound) {
		return nil
	}
	return err
}

// since returns the time, in milliseconds, from a time in a record to answered, the Date of the response. It returns -1 if the record does
// not contain the time. It never returns another negative value, although Date, which has whole seconds, may precede a time in the same
// second.
func since(record map[string]any, member string, answered time.Time) int64 {
	at := catalog.TimeMember(record, member)
	if at.IsZero() || answered.IsZero() {
		return -1
	}
	return max(0, answered.Sub(at).Milliseconds())
}
