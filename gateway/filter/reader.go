package filter

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Reader reads objects of the platform on the gateway's own account, with the
// organisation's credential. Its results are shared and must not be changed.
type Reader struct {
	Upstream *upstream.Client
	Recorder *telemetry.Recorder
	Agent    string
	// Kept are the operations that list the resources of organisations, Gets those that read
	// one resource of a kind.
	Kept []*schema.Operation
	Gets map[operation.Kind]*schema.Operation
}

// Recall is Read, or a recent result of Read: for data that does not alone
// decide about a change.
func (r *Reader) Recall(ctx context.Context, ex *Exchange, op *schema.Operation, params map[string]string) (any, *Answer, error) {
	if doc, ok := ex.Ports.Recent.get(recentKey{ex.Caller.Org, expand(op.Path, params)}); ok {
		return doc, nil, nil
	}
	return r.Read(ctx, ex, op, params)
}

// Read gets one object. When the platform refuses, the second result is its
// answer, fit for the caller.
func (r *Reader) Read(ctx context.Context, ex *Exchange, op *schema.Operation, params map[string]string) (any, *Answer, error) {
	began := r.Recorder.Now()
	ctx, span := r.Recorder.Stage(ctx, "read")
	defer span.End()
	child := ex.child(op, ex.Caller, params)
	if err := (Rebuild{Agent: r.Agent}).Request(ctx, child); err != nil {
		return nil, nil, err
	}
	done, err := ex.Ports.Sender.Send(ctx, child)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if status := child.Answer.Status; status != http.StatusOK {
		if status < http.StatusMultipleChoices { // no object, and no refusal that could be the caller's answer
			return nil, nil, fmt.Errorf("%w: a read was answered %d", upstream.ErrUnreachable, status)
		}
		if err := (Relay{Upstream: r.Upstream}).Response(ctx, child); err != nil {
			return nil, nil, err
		}
		return nil, child.Answer, nil
	}
	doc, err := strictjson.DecodeLenient(child.Answer.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the platform's answer is not JSON: %w", upstream.ErrUnreachable, err)
	}
	ex.Ports.Recent.put(recentKey{ex.Caller.Org, child.Out.Path}, doc, began)
	return doc, nil, nil
}

// listed reports whether the answer of an operation that lists resources has one of
// an id.
func (r *Reader) listed(ctx context.Context, ex *Exchange, op *schema.Operation, id string) (bool, *Answer, error) {
	doc, refusal, err := r.Recall(ctx, ex, op, nil)
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

// Lists reads the platform's catalog with an organisation's credential.
func (r *Reader) Lists(ctx context.Context, org string) (l catalog.Lists, err error) {
	for _, part := range []struct {
		path  string
		parse func(doc any) error
	}{
		{"/v2/catalog/gpus", func(doc any) (err error) { l.GPUs, err = catalog.ParseGPUs(doc); return err }},
		{"/v2/catalog/cpus", func(doc any) (err error) { l.CPUs, err = catalog.ParseCPUs(doc); return err }},
		{"/v2/catalog/datacenters", func(doc any) (err error) { l.Tiers, err = catalog.ParseTiers(doc); return err }},
	} {
		doc, _, err := r.list(ctx, org, part.path)
		if err == nil {
			err = part.parse(doc)
		}
		if err != nil {
			return l, fmt.Errorf("reading %s: %w", part.path, err)
		}
	}
	return l, nil
}

// list reads a list outside any exchange. at is the time by the platform's clock.
func (r *Reader) list(ctx context.Context, org, path string) (doc any, at time.Time, err error) {
	return r.ask(ctx, upstream.Request{Org: org, Method: http.MethodGet, Target: path})
}

// errAbsent means that the platform has answered 404.
var errAbsent = fmt.Errorf("%w: there is no such resource", upstream.ErrUnreachable)

// ask sends a request outside any exchange and reads the answer, which must be 200.
func (r *Reader) ask(ctx context.Context, q upstream.Request) (doc any, at time.Time, err error) {
	q.Header = http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {r.Agent}}
	if q.Body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	res, err := r.Upstream.Do(ctx, q) //nolint:bodyclose // readAll closes it
	if err != nil {
		return nil, at, err
	}
	body, err := readAll(res.Body, maxAnswer)
	if err != nil {
		return nil, at, fmt.Errorf("%w: %w", upstream.ErrUnreachable, err)
	}
	if res.StatusCode == http.StatusNotFound {
		return nil, at, fmt.Errorf("%w: %s %s", errAbsent, q.Method, q.Target)
	}
	if res.StatusCode != http.StatusOK {
		return nil, at, fmt.Errorf("%w: %s %s answered %d", upstream.ErrUnreachable, q.Method, q.Target, res.StatusCode)
	}
	doc, err = strictjson.DecodeLenient(body)
	return doc, date(res.Header), err
}
