package platform

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// The states of a batch.
const (
	batchDraft     = "DRAFT"
	batchFinalized = "FINALIZED"
	batchCancelled = "CANCELLED"
)

// maxBatched is how many requests a batch takes, maxBatches how many batches of an
// endpoint may be unfinished.
const (
	maxBatched = 5000
	maxBatches = 10
)

// batch is jobs that are collected and then run together.
type batch struct {
	id, name, status string
	created          time.Time
	requests         []*batched
}

// batched is one request of a batch; it has a job once the batch is finalized.
type batched struct {
	id    string
	input map[string]any
	job   *job
}

func batchRoutes() []route {
	const base, post = "/v2/{id}/batch", http.MethodPost
	return []route{
		getRoute(base, "listBatches", onQueue((*exchange).batchesLocked)),
		changeRoute(post, base, "createBatch", (*exchange).createBatch),
		getRoute(base+"/{batch}", "getBatch", onBatch(nil)),
		changeRoute(http.MethodPut, base+"/{batch}", "updateBatch", (*exchange).updateBatch),
		getRoute(base+"/{batch}/requests", "listBatchRequests", onQueue((*exchange).batchRequestsLocked), "offset", "limit"),
		changeRoute(post, base+"/{batch}/requests", "addBatchRequests", (*exchange).addBatchRequests),
		deleteRoute(base+"/{batch}/requests/{request}", "deleteBatchRequest", onBatch((*exchange).dropRequestLocked)),
		changeRoute(post, base+"/{batch}/finalize", "finalizeBatch", onBatch((*exchange).finalizeBatchLocked)),
		changeRoute(post, base+"/{batch}/cancel", "cancelBatch", onBatch((*exchange).cancelBatchLocked)),
	}
}

// batchOf is the batch of the endpoint that the path names.
func (x *exchange) batchOf(e *endpoint) (*batch, error) {
	i := slices.IndexFunc(e.batches, func(b *batch) bool { return b.id == x.params[1] })
	if i < 0 {
		return nil, notFound("batch")
	}
	return e.batches[i], nil
}

// onBatch is an operation on the batch that the path names, which it answers with. nil does
// nothing.
func onBatch(f func(x *exchange, e *endpoint, b *batch) error) handler {
	return onQueue(func(x *exchange, e *endpoint) (reply, error) {
		b, err := x.batchOf(e)
		if err == nil && f != nil {
			err = f(x, e, b)
		}
		if err != nil {
			return reply{}, err
		}
		return ok(encoded(b.view(e))), nil
	})
}

// draft refuses to change a batch that is finalized.
func (b *batch) draft() error {
	if b.status != batchDraft {
		return badRequest("the batch is " + b.status)
	}
	return nil
}

// parseBatched reads a list of requests.
func parseBatched(v any, at string) ([]*batched, error) {
	var c checker
	list, isList := v.([]any)
	if !isList {
		c.add(at, "expected array, but got %s", kind(v))
	}
	out := make([]*batched, 0, len(list))
	for i, item := range list {
		m, _ := item.(map[string]any)
		f := fields{c: &c, at: at + "[" + strconv.Itoa(i) + "]", m: m}
		f.require("input")
		input, _ := typed[map[string]any](f, "input", "object")
		out = append(out, &batched{input: input})
	}
	if len(c.errs) > 0 {
		return nil, badRequest("the request is not a batch", c.errs...)
	}
	return out, nil
}

func (x *exchange) addLocked(b *batch, list []*batched) error {
	if len(b.requests)+len(list) > maxBatched {
		return badRequest(fmt.Sprintf("a batch takes %d requests", maxBatched))
	}
	for _, r := range list {
		r.id = x.batchIDLocked()
		b.requests = append(b.requests, r)
	}
	return nil
}

func (x *exchange) batchIDLocked() string { return fmt.Sprintf("%016x", x.s.rand.Uint64()) }

func (x *exchange) createBatch() (reply, error) {
	body, err := x.decode()
	if err != nil {
		return reply{}, err
	}
	list, err := parseBatched(body, "$")
	if err != nil {
		return reply{}, err
	}
	return onQueue(func(x *exchange, e *endpoint) (reply, error) { return x.createBatchLocked(e, list) })(x)
}

func (x *exchange) createBatchLocked(e *endpoint, list []*batched) (reply, error) {
	active := 0
	for _, b := range e.batches {
		if b.status == batchDraft || b.status == batchFinalized && b.count(jobQueued)+b.count(jobRunning) > 0 {
			active++
		}
	}
	if active >= maxBatches {
		return reply{}, refuse(http.StatusTooManyRequests, "too many batches of this endpoint")
	}
	b := &batch{id: x.batchIDLocked(), status: batchDraft, created: x.now}
	if err := x.addLocked(b, list); err != nil {
		return reply{}, err
	}
	e.batches = append(e.batches, b)
	return ok(encoded(map[string]any{"id": b.id, "status": b.status})), nil
}

// count is how many requests have a job in a state.
func (b *batch) count(status string) int {
	n := 0
	for _, r := range b.requests {
		if r.job != nil && r.job.Status == status {
			n++
		}
	}
	return n
}

func (b *batch) view(e *endpoint) map[string]any {
	return map[string]any{
		"id": b.id, "name": b.name, "endpointId": e.ID, "status": b.status, "requestTotal": len(b.requests),
		"requestInProgress": b.count(jobRunning), "requestCompleted": b.count(jobCompleted),
		"requestFailed": b.count(jobFailed) + b.count(jobTimedOut), "createdAt": b.created.UnixMilli(),
	}
}

func (x *exchange) batchesLocked(e *endpoint) (reply, error) {
	views := []map[string]any{}
	for _, b := range slices.Backward(e.batches) {
		views = append(views, b.view(e))
	}
	return ok(encoded(map[string]any{"batches": views})), nil
}

func (x *exchange) updateBatch() (reply, error) {
	f, err := x.openBody()
	if err != nil {
		return reply{}, err
	}
	if f.m == nil {
		return reply{}, badRequest("the request must be a JSON object")
	}
	return onBatch(func(_ *exchange, _ *endpoint, b *batch) error {
		b.name, _ = f.m["name"].(string)
		return nil
	})(x)
}

func (x *exchange) addBatchRequests() (reply, error) {
	f, err := x.openBody()
	if err != nil {
		return reply{}, err
	}
	list, err := parseBatched(f.m["requests"], "$.requests")
	if err != nil {
		return reply{}, err
	}
	return onBatch(func(x *exchange, _ *endpoint, b *batch) error {
		if err := b.draft(); err != nil {
			return err
		}
		return x.addLocked(b, list)
	})(x)
}

func (x *exchange) dropRequestLocked(_ *endpoint, b *batch) error {
	if err := b.draft(); err != nil {
		return err
	}
	i := slices.IndexFunc(b.requests, func(r *batched) bool { return r.id == x.params[2] })
	if i < 0 {
		return notFound("request")
	}
	b.requests = slices.Delete(b.requests, i, i+1)
	return nil
}

func (x *exchange) finalizeBatchLocked(e *endpoint, b *batch) error {
	if err := b.draft(); err != nil {
		return err
	}
	b.status = batchFinalized
	for _, r := range b.requests {
		var input jobInput
		fields{c: &checker{}, at: "$.input", m: r.input}.fill(&input)
		r.job = &job{Keep: keepAsync, Input: r.input, Script: input.Script, Expires: time.Time{}.Add(24 * time.Hour)}
		x.submitLocked(e, r.job)
	}
	return nil
}

func (x *exchange) cancelBatchLocked(e *endpoint, b *batch) error {
	b.status = batchCancelled
	for _, r := range b.requests {
		if r.job != nil && r.job.Status == jobQueued {
			r.job.Status, r.job.Ends = jobCancelled, x.now
			e.drop(r.job)
		}
	}
	x.s.scheduleLocked(x.acct, e, x.now)
	return nil
}

func (x *exchange) batchRequestsLocked(e *endpoint) (reply, error) {
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(x.query.Get(name))
		if err != nil || n < 0 {
			return otherwise
		}
		return n
	}
	b, err := x.batchOf(e)
	if err != nil {
		return reply{}, err
	}
	total := len(b.requests)
	offset, limit := min(number("offset", 0), total), number("limit", 50)
	end := min(offset+limit, total)
	views := []map[string]any{}
	for _, r := range b.requests[offset:end] {
		v := map[string]any{"id": r.id, "status": b.status}
		if j := r.job; j != nil {
			v["status"] = j.Status
			switch {
			case j.Status == jobCompleted:
				v["output"] = j.Output
			case j.Error != "":
				v["error"] = j.Error
			}
			if !j.Started.IsZero() {
				v["startedAt"] = j.Started.UnixMilli()
			}
			if j.final() {
				v["completedAt"] = j.Ends.UnixMilli()
			}
		}
		views = append(views, v)
	}
	return ok(encoded(map[string]any{"requests": views, "total": total, "offset": offset, "limit": limit, "hasMore": end < total})), nil
}
