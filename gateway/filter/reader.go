package filter

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Reader reads objects of the platform on the gateway's own account, with the
// organisation's credential. What it returns is shared and must not be changed.
type Reader struct {
	Upstream *upstream.Client
	Recorder *telemetry.Recorder
	Agent    string
	// Recent keeps what was read for a moment; required.
	Recent *Recent

	// rehearsed holds what a rehearsal made, changed or, as nil, deleted;
	// offline is set where nothing may be read.
	rehearsed map[recentKey]any
	offline   bool
}

// goneDetail is said of what a rehearsal deleted.
const goneDetail = "it is gone by then"

// Recall is Read, or what Read returned a moment ago: for what does not alone
// decide about a change.
func (r *Reader) Recall(ctx context.Context, ex *Exchange, op *schema.Operation, params map[string]string) (any, *Answer, error) {
	key := recentKey{ex.Caller.Org, expand(op.Path, params)}
	if _, pretended := r.rehearsed[key]; !pretended {
		if doc, ok := r.Recent.get(key); ok {
			return doc, nil, nil
		}
	}
	return r.Read(ctx, ex, op, params)
}

// Forget makes the next Recall of an object a Read.
func (r *Reader) Forget(org string, op *schema.Operation, params map[string]string) {
	r.Recent.forget(recentKey{org, expand(op.Path, params)})
}

// Read gets one object. When the platform refuses, the second result is its
// answer, fit for the caller.
func (r *Reader) Read(ctx context.Context, ex *Exchange, op *schema.Operation, params map[string]string) (any, *Answer, error) {
	key := recentKey{ex.Caller.Org, expand(op.Path, params)}
	if doc, pretended := r.rehearsed[key]; pretended {
		if doc == nil {
			return nil, &Answer{Status: http.StatusNotFound, Header: make(http.Header), Body: problem.NotFound.New(goneDetail).JSON()}, nil
		}
		return doc, nil, nil
	}
	if r.offline {
		return nil, nil, ErrOffline
	}
	began := r.Recent.now()
	ctx, span := r.Recorder.Stage(ctx, "read")
	defer span.End()
	child := &Exchange{
		In: ex.In, RequestID: ex.RequestID, DecisionID: ex.DecisionID, Dialect: route.V2,
		Operation: op, Caller: ex.Caller, Params: params, Event: new(telemetry.Event),
	}
	if err := (Rebuild{Agent: r.Agent}).Request(ctx, child); err != nil {
		return nil, nil, err
	}
	res, err := r.Upstream.Do(ctx, upstream.Request{ //nolint:bodyclose // readAll closes it
		Org: ex.Caller.Org, Method: child.Out.Method, Target: child.Out.Target(), Header: child.Out.Header,
	})
	if err != nil {
		return nil, nil, err
	}
	body, err := readAll(res.Body, maxAnswer)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", upstream.ErrUnreachable, err)
	}
	child.Answer = &Answer{Status: res.StatusCode, Header: res.Header, Body: body, Relayed: true}
	if res.StatusCode != http.StatusOK {
		if res.StatusCode < http.StatusMultipleChoices { // no object, and no refusal that could be the caller's answer
			return nil, nil, fmt.Errorf("%w: a read was answered %d", upstream.ErrUnreachable, res.StatusCode)
		}
		if err := (Relay{Upstream: r.Upstream}).Response(ctx, child); err != nil {
			return nil, nil, err
		}
		return nil, child.Answer, nil
	}
	doc, err := strictjson.DecodeLenient(body)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the platform's answer is not JSON: %w", upstream.ErrUnreachable, err)
	}
	r.Recent.put(key, doc, began)
	return doc, nil, nil
}

// GPUs reads the GPU price list with an organisation's credential.
func (r *Reader) GPUs(ctx context.Context, org string) ([]catalog.GPU, error) {
	doc, err := r.list(ctx, org, "/v2/catalog/gpus")
	if err != nil {
		return nil, err
	}
	return catalog.ParseGPUs(doc)
}

// CPUs reads the CPU price list with an organisation's credential.
func (r *Reader) CPUs(ctx context.Context, org string) ([]catalog.CPU, error) {
	doc, err := r.list(ctx, org, "/v2/catalog/cpus")
	if err != nil {
		return nil, err
	}
	return catalog.ParseCPUs(doc)
}

func (r *Reader) list(ctx context.Context, org, path string) (any, error) {
	res, err := r.Upstream.Do(ctx, upstream.Request{ //nolint:bodyclose // readAll closes it
		Org: org, Method: http.MethodGet, Target: path, Header: http.Header{
			"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {r.Agent},
		}})
	if err != nil {
		return nil, err
	}
	body, err := readAll(res.Body, maxAnswer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", upstream.ErrUnreachable, err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: GET %s answered %d", upstream.ErrUnreachable, path, res.StatusCode)
	}
	return strictjson.DecodeLenient(body)
}
