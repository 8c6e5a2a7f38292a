package filter

import (
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// MaxRunCost returns the maximum cost of a run, or of all requests added to a batch together with the most expensive of them. known is
// false if the cost is unlimited or unknown.
func (ex *Exchange) MaxRunCost(price catalog.RunPrice) (most, dearest catalog.Money, known bool) {
	body, _ := ex.Body.Doc.(map[string]any)
	switch {
	case ex.Opaque():
		body = map[string]any{} // priced like an empty body
	case ex.Operation.ID == "retryJob":
		body = nil // the body of the original job is unknown
	}
	if !ex.AddsToBatch() {
		most, known = price.MaxCost(body, ex.OutboundSize())
		return most, most, known
	}
	requests, _ := body["requests"].([]any)
	for _, item := range requests {
		request, _ := item.(map[string]any)
		text, err := strictjson.Append(nil, request)
		one, ok := price.MaxCost(request, int64(len(text)))
		if err != nil || !ok {
			return 0, 0, false
		}
		most, dearest = most+one, max(dearest, one)
	}
	return most, dearest, true
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
