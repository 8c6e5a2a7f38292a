package filter

import (
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// MaxRunCost is the most that a call can cost: a run, or all that are added to a batch and
// the dearest of them.
func (ex *Exchange) MaxRunCost(price catalog.Run) (most, dearest catalog.Money, known bool) {
	body, _ := ex.Body.Doc.(map[string]any)
	switch {
	case ex.Opaque():
		body = map[string]any{} // it is priced as an empty body
	case ex.Operation.ID == "retryJob":
		body = nil // that of the job is not known
	}
	if !ex.AddsToBatch() {
		most, known = price.Most(body, ex.OutboundSize())
		return most, most, known
	}
	requests, _ := body["requests"].([]any)
	for _, item := range requests {
		request, _ := item.(map[string]any)
		text, err := strictjson.Append(nil, request)
		one, ok := price.Most(request, int64(len(text)))
		if err != nil || !ok {
			return 0, 0, false
		}
		most, dearest = most+one, max(dearest, one)
	}
	return most, dearest, true
}

// AddsToBatch reports whether a call adds requests to a batch.
func (ex *Exchange) AddsToBatch() bool {
	return ex.Operation.ID == "createBatch" || ex.Operation.ID == "addBatchRequests"
}

// LimitSizeSizeoundSize is the length of the body that is sent, at least.
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
