package filter

import (
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// MaxRunCost returns the maximum cost of a run. If the call adds requests to a batch, total is the maximum cost of these requests together,
// and largest the maximum cost of the most expensive request. Otherwise both are the same. known is false if the cost has no upper limit or
// is unknown.
func (ex *Exchange) MaxRunCost(price catalog.RunPrice) (total, largest catalog.Money, known bool) {
	body, _ := ex.Body.Doc.(map[string]any)
	switch {
	case ex.Opaque():
		body = map[string]any{} // priced like an empty body
	case ex.Operation.ID == "retryJob":
		body = nil // the body of the original job is unknown
	}
	if !ex.AddsToBatch() {
		total, known = price.MaxCost(body, ex.OutboundSize())
		return total, total, known
	}
	requests, _ := body["requests"].([]any)
	for _, item := range requests {
		request, _ := item.(map[string]any)
		text, err := strictjson.Append(nil, request)
		one, ok := price.MaxCost(request, int64(len(text)))
		if err != nil || !ok {
			return 0, 0, false
		}
		total, largest = total+one, max(largest, one)
	}
	return total, largest, true
}

// AddsToBatch reports whether the call adds requests to a batch.
func (ex *Exchange) AddsToBatch() bool {
	return ex.Operation.ID == "createBatch" || ex.Operation.ID == "addBatchRequests"
}

// OutboundSize returns the length of the outbound body in bytes, or an upper limit if the body has not been read.
func (ex *Exchange) OutboundSize() int64 {
	size := max(ex.In.Length, int64(len(ex.In.Body)))
	if ex.Opaque() && ex.In.Length < 0 && ex.In.Source != nil {
		size = ex.BodyLimit()
	}
	if len(ex.Evaluation.Verdict.Mutate) > 0 {
		if text, err := strictjson.Append(nil, ex.Body.Doc); err == nil {
			size = max(size, int64(len(text)))
		}
	}
	return size
}
