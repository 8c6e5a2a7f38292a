package filter

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Reader reads objects of the platform for a call, with the credential of its
// organisation. Its results are shared and must not be changed.
type Reader struct {
	Upstream *upstream.Client
	Recorder *telemetry.Recorder
	Agent    string
	// Gets are the operations that read one resource of a kind.
	Gets map[operation.Kind]*schema.Operation
	// Health reads the health of an endpoint or a public model through the run interface.
	Health *schema.Operation
}

// OwnsTarget reports whether the target of a run, {id} in its path, is an endpoint of the organisation. It
// returns a problem of kind NotFound if the target is neither an endpoint nor a public model, and of kind
// PriceUnavailable if the platform does not say.
func (r *Reader) OwnsTarget(ctx context.Context, ex *Exchange) (bool, error) {
	id := ex.Params["id"]
	if catalog.Public(id) {
		return false, nil
	}
	for _, op := range []*schema.Operation{r.Gets[operation.KindEndpoint], r.Health} {
		_, refusal, err := r.ReadCached(ctx, ex, op, map[string]string{"id": id})
		switch {
		case err != nil, refusal != nil && refusal.Status != http.StatusNotFound:
			return false, problem.PriceUnavailable.New("it cannot be determined at the moment whether this is an endpoint of the organisation, and no price of its runs is known").
				With("Retry-After", "1").Because(err)
		case refusal == nil:
			return op != r.Health, nil
		}
	}
	return false, problem.NotFound.New("no endpoint or public model of this name")
}

// ReadCached is Read, or a recent result of Read: for data that does not alone
// decide about a change.
func (r *Reader) ReadCached(ctx context.Context, ex *Exchange, op *schema.Operation, params map[string]string) (any, *Response, error) {
	if doc, ok := ex.Ports.ReadCache.get(recentKey{ex.Caller.Org, expand(op.Path, params)}); ok {
		return doc, nil, nil
	}
	return r.Read(ctx, ex, op, params)
}

// Read gets one object. When the platform refuses, the second result is its
// answer, fit for the caller.
func (r *Reader) Read(ctx context.Context, ex *Exchange, op *schema.Operation, params map[string]string) (any, *Response, error) {
	began := r.Recorder.Now()
	ctx, span := r.Recorder.Stage(ctx, "read")
	defer span.End()
	child := ex.child(op, ex.Caller, params)
	if err := (BuildRequest{Agent: r.Agent}).Request(ctx, child); err != nil {
		return nil, nil, err
	}
	done, err := ex.Ports.Sender.Send(ctx, child)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if status := child.Response.Status; status != http.StatusOK {
		if status < http.StatusMultipleChoices { // no object, and no refusal that could be the caller's answer
			return nil, nil, fmt.Errorf("%w: a read was answered %d", upstream.ErrUnreachable, status)
		}
		if err := (FilterResponse{Upstream: r.Upstream}).Response(ctx, child); err != nil {
			return nil, nil, err
		}
		return nil, child.Response, nil
	}
	doc, err := strictjson.DecodeLenient(child.Response.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the platform's answer is not JSON: %w", upstream.ErrUnreachable, err)
	}
	ex.Ports.ReadCache.put(recentKey{ex.Caller.Org, child.Out.Path}, doc, began)
	return doc, nil, nil
}

// listMember reports whether the answer of an operation that lists resources has one of
// an id.
func (r *Reader) listed(ctx context.Context, ex *Exchange, op *schema.Operation, id string) (bool, *Response, error) {
	doc, refusal, err := r.ReadCached(ctx, ex, op, nil)
	if err != nil || refusal != nil {
		return false, refusal, err
	}
	row, _ := operation.Of(op.ID)
	answer, _ := doc.(map[string]any)
	items, _ := answer[row.List].([]any)
	return slices.ContainsFunc(items, func(item any) bool {
		record, _ := item.(map[string]any)
		return record["id"] == id
	}), nil, nil
}
