package filter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// ReadOperations maps each operation about one resource to the operation that reads the resource.
func ReadOperations(api *schema.API) map[string]*schema.Operation {
	reads := make(map[string]*schema.Operation)
	for _, row := range operation.All() {
		if get := api.Operation(row.ReadOperation); get != nil {
			reads[row.ID] = get
		}
	}
	return reads
}

// UpdateOperations maps each kind of resource to the operation that updates it.
func UpdateOperations(api *schema.API) map[operation.Kind]*schema.Operation {
	updates := make(map[operation.Kind]*schema.Operation)
	for _, row := range operation.All() {
		if row.Verb == operation.VerbUpdate && row.ReadOperation != "" {
			updates[row.Kind] = api.Operation(row.ID)
		}
	}
	return updates
}

// resolve sets ex.Evaluation.Input to everything the policies need: the body with the platform's defaults, the resource after the change
// including its template, and the price. Policies decide about the resulting resource, not just about the request.
//
// A resource that is changed is always read from the platform. A template may come from the read cache, because the values that were
// checked are the values that are sent; see seal.
func (f *EvaluatePolicies) resolve(ctx context.Context, ex *Exchange) error {
	op := ex.Operation
	before := ex.Evaluation.Input // set if a policy changed the body
	path := expand(op.Path, ex.Params)
	if ex.Opaque() {
		path = BalancedPath + ex.Params["id"] + "/" + ex.Params["path"] // the path that the worker receives
	}
	in := &policies.Input{
		Request: policies.Request{
			Operation: op.ID, Method: op.Method, Path: path,
			Params: ex.Params, Dialect: ex.Event.Dialect, Unknown: ex.Body.Unknown, Labels: ex.Body.Labels.Map(),
		},
		Caller: policies.Caller{Org: ex.Caller.Org, Team: ex.Caller.Team, Key: ex.Caller.Key, Roles: ex.Caller.RoleNames()},
		Time:   f.Recorder.Now(),
	}
	for name, values := range ex.Query {
		if in.Request.Query == nil {
			in.Request.Query = make(map[string]any, len(ex.Query))
		}
		in.Request.Query[name] = strings.Join(values, ",")
	}
	row, ok := operation.Lookup(op.ID)
	if ex.Body.HasDoc && row.Verb != operation.VerbExec { // commands may contain secrets
		in.Request.Body = bodyForPolicies(ex, op.FillDefaults(ex.Body.Doc))
	}
	ex.Evaluation.Input = in
	if !ok {
		return problem.PolicyUnavailable.New("policies cannot be evaluated for this operation").
			Because(fmt.Errorf("operation %q is missing from the operation table", op.ID))
	}
	verb := row.EffectiveVerb(in.Request.Body)
	if before != nil {
		in.Spend, in.Resource.Owner = before.Spend, before.Resource.Owner
	} else if err := f.readLedger(ctx, ex, row, verb); err != nil {
		return err
	}
	if !verb.HasResultState() {
		in.Cost = policies.Cost{Known: true}
		if price := ex.Tenant.Runs.For(ex.Params["id"]); row.Kind == operation.KindJob && verb == operation.VerbRun {
			if in.Cost.FreeRun = price.Free; price.Known() {
				_, in.Cost.Run, _ = ex.MaxRunCost(price)
			}
		}
		return f.readCurrent(ctx, ex, verb)
	}
	if err := f.resolveStates(ctx, ex, verb, before); err != nil || ex.Response != nil {
		return err
	}
	if before == nil { // policies may add any secret themselves
		if err := f.secrets(ctx, ex); err != nil || ex.Response != nil {
			return err
		}
	}
	if row.Price == operation.PriceFree {
		in.Cost = policies.Cost{Known: true}
	} else if err := f.price(ctx, ex, verb); err != nil {
		return err
	}
	if reason := ex.unknownCostReason(row.Kind); reason != "" {
		in.Cost, ex.Event.Priced = policies.Cost{Reason: reason}, false
	}
	return nil
}

func resolveNotes(in *policies.Input) []string {
	var notes []string
	if t := in.Resource.Template; t != nil {
		whose := "foreign"
		if t.Own {
			whose = "own"
		}
		notes = append(notes, fmt.Sprintf("values of the %s template %s are merged into the body and sent instead of its ID", whose, t.ID))
	}
	switch {
	case in.Cost.Known && in.Cost.Basis != "":
		notes = append(notes, fmt.Sprintf("at most %s USD per hour: %s", in.Cost.Hourly, in.Cost.Basis))
	case in.Cost.Run > 0:
		notes = append(notes, fmt.Sprintf("at most %s USD per run", in.Cost.Run))
	case !in.Cost.Known && in.Cost.Reason != "":
		notes = append(notes, "the price is unknown: "+in.Cost.Reason)
	}
	return notes
}

// readCurrent reads the resource of a call that has no resulting state (logs, stop, delete), if a policy reads the resource.
func (f *EvaluatePolicies) readCurrent(ctx context.Context, ex *Exchange, verb operation.Verb) error {
	get := f.Reads[ex.Operation.ID]
	if get == nil || verb == operation.VerbRead {
		return nil
	}
	if len(f.Policies.PoliciesReading(ex.Caller.Org, "resource", "current")) == 0 {
		return nil
	}
	params := map[string]string{}
	for _, p := range get.PathParams {
		params[p.Name] = ex.Params[p.Name]
	}
	current, refusal, err := f.Reader.ReadCached(ctx, ex, get, params)
	if err != nil {
		return err
	}
	ex.Response, ex.Evaluation.Input.Resource.Current = refusal, current
	return nil
}

// price sets the maximum cost of the resulting resource. Without a price list the cost is unknown. This affects only policies that read the
// cost.
func (f *EvaluatePolicies) price(ctx context.Context, ex *Exchange, verb operation.Verb) error {
	in := ex.Evaluation.Input
	ctx, span := f.Recorder.Stage(ctx, "price")
	defer span.End()
	snap, err := ex.Prices(ctx)
	if err != nil && !errors.Is(err, catalog.ErrUnavailable) {
		return fmt.Errorf("price list: %w", err)
	}
	if err := refuseAbbreviations(ex.Body.Doc, snap); err != nil {
		return err
	}
	in.Catalog = snap
	after, _ := in.Resource.After.(map[string]any)
	in.Cost = snap.Price(ex.Operation.ID, verb, after)
	ex.Evaluation.PriceErr = err
	if row, _ := operation.Lookup(ex.Operation.ID); row.Price == operation.PriceSandbox && !in.Cost.Known {
		return refuseUnpriced(in.Cost.Reason, err)
	}
	if in.Cost.Known {
		ex.Event.Priced, ex.Event.Hourly = true, float64(in.Cost.Hourly)/1e6
	}
	return nil
}

// refuseUnpriced returns the refusal of a call with an unknown price. It applies even if no budget or policy depends on the price.
func refuseUnpriced(reason string, err error) error {
	if err != nil {
		return problem.PriceUnavailable.New("the platform's price list is unavailable; try again later").With("Retry-After", "5").Because(err)
	}
	return problem.PriceUnknown.New("the price of this call is unknown: " + reason)
}

// Prices returns the price list of the caller's organisation, reading it if necessary.
func (ex *Exchange) Prices(ctx context.Context) (*catalog.Snapshot, error) {
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	return ex.Ports.Prices.Snapshot(ctx, ex.Caller.Org)
}
