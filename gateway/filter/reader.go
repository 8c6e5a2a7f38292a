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

// Reader reads resources from the platform on behalf of a call, with the credential of the call's organisation. Its results are shared and
// must not be changed.
type Reader struct {
	Upstream *upstream.Client
	Recorder *telemetry.Recorder
	Agent    string
	// Gets maps each kind of resource to the operation that reads one resource.
	Gets map[operation.Kind]*schema.Operation
	// Health reads the health of an endpoint or a public model through the run interface.
	Health *schema.Operation
}

// OwnsTarget reports whether the target of a run is an endpoint of the organisation. The target is the path parameter id. It returns a
// problem of kind NotFound if there is no such endpoint or public model, and of kind PriceUnavailable if the platform does not respond.
func (r *Reader) OwnsTarget(ctx context.Context, ex *Exchange) (bool, error) {
	id := ex.Params["id"]
	if catalog.IsPublicModel(id) {
		return false, nil
	}
	for _, op := range []*schema.Operation{r.Gets[operation.KindEndpoint], r.Health} {
		_, refusal, err := r.ReadCached(ctx, ex, op, map[string]string{"id": id})
		switch {
		case err != nil, refusal != nil && refusal.Status != http.StatusNotFound:
			return false, problem.PriceUnavailable.New("the price of this run is unknown, and the owner of the endpoint cannot be determined right now; try again later").
				With("Retry-After", "1").Because(err)
		case refusal == nil:
			return op != r.Health, nil
		}
	}
	return false, problem.NotFound.New("no endpoint or public model has this name")
}

// RequireEndpoint returns a problem of kind NotFound if the organisation has no endpoint whose ID is the path parameter id. Each endpoint
// has its own host, and the platform key must not be sent to other hosts. An endpoint that was found once is not read again.
func (r *Reader) RequireEndpoint(ctx context.Context, ex *Exchange) error {
	key := recentKey{ex.Caller.Org, ex.Params["id"]}
	if ex.Ports.ReadCache.endpoints.Contains(key) {
		return nil
	}
	_, refusal, err := r.Read(ctx, ex, r.Gets[operation.KindEndpoint], map[string]string{"id": ex.Params["id"]})
	switch {
	case err != nil:
		return err
	case refusal == nil:
		ex.Ports.ReadCache.endpoints.Add(key, struct{}{})
	case refusal.Status == http.StatusNotFound:
		return problem.NotFound.New("the organisation has no endpoint with this ID")
	default:
		ex.Response = refusal
	}
	return nil
}

// ReadCached is like Read, but may return a result from the ReadCache, which is up to two seconds old. Do not use it if the result alone
// decides whether a change is allowed.
func (r *Reader) ReadCached(ctx context.Context, ex *Exchange, op *schema.Operation, params map[string]string) (any, *Response, error) {
	if doc, ok := ex.Ports.ReadCache.get(recentKey{ex.Caller.Org, expand(op.Path, params)}); ok {
		return doc, nil, nil
	}
	return r.Read(ctx, ex, op, params)
}

// Read reads one resource. If the platform refuses the call, the second result is the platform's response after SanitizeResponse, and the
// first result is nil.
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
		if status < http.StatusMultipleChoices { // neither a resource nor a refusal
			return nil, nil, fmt.Errorf("%w: a read of the resource returned status %d", upstream.ErrUnreachable, status)
		}
		if err := (SanitizeResponse{Upstream: r.Upstream}).Response(ctx, child); err != nil {
			return nil, nil, err
		}
		return nil, child.Response, nil
	}
	doc, err := strictjson.DecodeLenient(child.Response.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the platform's response is not JSON: %w", upstream.ErrUnreachable, err)
	}
	ex.Ports.ReadCache.put(recentKey{ex.Caller.Org, child.Out.Path}, doc, began)
	return doc, nil, nil
}

// listed reports whether the list returned by an operation contains a resource with the given ID.
func (r *Reader) listed(ctx context.Context, ex *Exchange, op *schema.Operation, id string) (bool, *Response, error) {
	doc, refusal, err := r.ReadCached(ctx, ex, op, nil)
	if err != nil || refusal != nil {
		return false, refusal, err
	}
	row, _ := operation.Lookup(op.ID)
	answer, _ := doc.(map[string]any)
	items, _ := answer[row.ListMember].([]any)
	return slices.ContainsFunc(items, func(item any) bool {
		record, _ := item.(map[string]any)
		return record["id"] == id
	}), nil, nil
}
