package filter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Resolve finds out what policies must see besides the request: the body with
// the platform's defaults, the state a change would lead to, and its price. A
// policy judges what will be, never the request alone.
type Resolve struct {
	// Reads maps a changing operation to the one that reads its object; see
	// ReadsOf.
	Reads    map[string]*schema.Operation
	Reader   *Reader
	Catalog  *catalog.Catalog
	Recorder *telemetry.Recorder
}

// ReadsOf finds, for every operation that changes one object, the operation
// that reads it: GET at the same path, an action's at the path above it.
func ReadsOf(api *schema.API) map[string]*schema.Operation {
	gets := make(map[string]*schema.Operation)
	for _, op := range api.Operations() {
		if op.Method == http.MethodGet && strings.HasSuffix(op.Path, "}") {
			gets[op.Path] = op
		}
	}
	reads := make(map[string]*schema.Operation)
	for _, op := range api.Operations() {
		if get := gets[strings.TrimSuffix(op.Path, "/action")]; get != nil && op.Mutates {
			reads[op.ID] = get
		}
	}
	return reads
}

// Name implements Filter.
func (*Resolve) Name() string { return "resolve" }

// Request sets ex.Input. It answers with the platform's own refusal when the
// object a change is about cannot be read.
func (f *Resolve) Request(ctx context.Context, ex *Exchange) error {
	op := ex.Operation
	in := &policies.Input{
		Request: policies.Request{
			Operation: op.ID, Method: op.Method, Path: expand(op.Path, ex.Params),
			Params: ex.Params, Dialect: ex.Event.Dialect,
		},
		Caller: policies.Caller{Org: ex.Caller.Org, Team: ex.Caller.Team, Key: ex.Caller.Key, Roles: roles(ex)},
		Time:   f.Recorder.Now(),
	}
	for name, values := range ex.Query {
		if in.Request.Query == nil {
			in.Request.Query = make(map[string]any, len(ex.Query))
		}
		in.Request.Query[name] = strings.Join(values, ",")
	}
	if ex.HasDoc {
		in.Request.Body = op.FillDefaults(ex.Doc)
	}
	ex.Input = in
	_, verb, ok := policies.Operation(op.ID)
	if !ok {
		return problem.PolicyUnavailable.New("no policy can judge this operation").
			Because(fmt.Errorf("operation %q is not classified", op.ID))
	}
	action := ""
	if body, isObject := in.Request.Body.(map[string]any); isObject && op.ID == "podAction" {
		action, _ = body["action"].(string)
		verb = policies.VerbOf(action)
	}
	if !verb.Settles() {
		in.Cost = policies.Cost{Known: true}
		return nil
	}
	if err := f.settle(ctx, ex, verb); err != nil || ex.Answer != nil {
		return err
	}
	return f.price(ctx, ex, action)
}

// settle fills in the state before and after.
func (f *Resolve) settle(ctx context.Context, ex *Exchange, verb policies.Verb) error {
	in := ex.Input
	if verb == policies.VerbCreate {
		in.Resource.After = in.Request.Body
		return nil
	}
	get := f.Reads[ex.Operation.ID]
	if get == nil { // an object that is only ever replaced, such as the account's keys
		in.Resource.After = in.Request.Body
		return nil
	}
	current, refusal, err := f.Reader.Read(ctx, ex, get, ex.Params)
	if err != nil {
		return err
	}
	if refusal != nil {
		ex.Answer = refusal
		return nil
	}
	in.Resource.Current, in.Resource.After = current, current
	if verb == policies.VerbUpdate {
		in.Resource.After = merge(current, ex.Doc)
	}
	return nil
}

// price fills in the worst case of the state after. A price list is read only
// for operations that are priced.
func (f *Resolve) price(ctx context.Context, ex *Exchange, action string) error {
	in := ex.Input
	rule, ok := catalog.RuleOf(ex.Operation.ID)
	if !ok || rule == catalog.RuleFree {
		in.Cost = policies.Cost{Known: ok}
		return nil
	}
	ctx, span := f.Recorder.Stage(ctx, "price")
	defer span.End()
	snap, err := f.Catalog.Snapshot(ctx, ex.Caller.Org)
	if err != nil && !errors.Is(err, catalog.ErrUnavailable) {
		return fmt.Errorf("price list: %w", err)
	}
	in.Catalog = snap
	after, _ := in.Resource.After.(map[string]any)
	in.Cost = snap.Price(ex.Operation.ID, after, action)
	if !in.Cost.Known && err != nil {
		return problem.PriceUnavailable.New("the platform's price list cannot be read at the moment").
			With("Retry-After", "5").Because(err)
	}
	if in.Cost.Known {
		ex.Event.Priced, ex.Event.Hourly = true, float64(in.Cost.Hourly)/1e6
	}
	return nil
}

func roles(ex *Exchange) []string {
	out := make([]string, len(ex.Caller.Roles))
	for i, r := range ex.Caller.Roles {
		out[i] = string(r)
	}
	return out
}

// merge applies a PATCH body to an object by the platform's rule: what is
// present replaces, what is absent stays; objects are merged member by member.
func merge(current, patch any) any {
	c, ok1 := current.(map[string]any)
	p, ok2 := patch.(map[string]any)
	if !ok1 || !ok2 {
		return patch
	}
	out := maps.Clone(c)
	for name, value := range p {
		if old, ok := out[name]; ok && name != "env" {
			value = merge(old, value)
		}
		out[name] = value
	}
	return out
}
