package idempotency

import (
	"context"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Deduplicate is the stage that answers repeated requests; see [Deduplicator]. The intent of a call is recorded later, together with its
// reservation. If ex.Ports.Intents is nil, as in a dry run, no request is treated as a repeat.
type Deduplicate struct{}

// stageIdempotency is the name of the stage.
const stageIdempotency = "idempotency"

// Name implements Filter.
func (Deduplicate) Name() string { return stageIdempotency }

// Request answers a repeated request with an idempotency key. It returns 400 if the key is malformed, 422 if the key was used for another
// request, 409 if the first request is still in progress, and 503 if the store is down.
func (Deduplicate) Request(ctx context.Context, ex *filter.Exchange) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	if !row.Deduplicated(ex.Body.Doc) {
		return nil
	}
	key, err := idempotencyKey(ex.In.Header[filter.HeaderIdempotencyKey])
	if err != nil || ex.Ports.Intents == nil || key == "" && row.Verb != operation.VerbCreate {
		return err
	}
	return ex.Ports.Intents.Enter(ctx, ex, key)
}

// Response ends the intent of a call. The intent of a successful create ends later, in [filter.Exchange.Deliver].
func (Deduplicate) Response(ctx context.Context, ex *filter.Exchange) error {
	if ex.Idempotency == nil {
		return nil
	}
	return ex.Ports.Intents.End(ctx, ex, nil, filter.DeliveryPending)
}

// Notes implements Explainer.
func (Deduplicate) Notes(ex *filter.Exchange, _ string) []string {
	if ex.Adopted == "" || ex.Sent != filter.NotSent {
		return nil
	}
	return []string{ex.Adopted + " was created by an earlier request whose response was lost"}
}

// RecoverLost is the stage that determines the outcome of a call that creates a resource, if the response was lost; see
// [Deduplicator.Search]. It runs before other stages modify the platform's response.
type RecoverLost struct{}

// Name implements Filter.
func (RecoverLost) Name() string { return "recover lost create" }

// Request returns 503 if another gateway may have declared this gateway dead. The sender of the call checks it again.
func (RecoverLost) Request(_ context.Context, ex *filter.Exchange) error { return ex.MaySend() }

// Response replaces the response if the outcome of the call is unknown. The new response contains the created resource if it is found, and
// is a 504 otherwise.
func (RecoverLost) Response(ctx context.Context, ex *filter.Exchange) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	if o := ex.Idempotency; o == nil || !o.Recorded || row.Verb != operation.VerbCreate {
		return nil
	}
	return ex.Ports.Intents.Search(ctx, ex)
}

// maxIdempotencyKey is the maximum length of a key in bytes.
const maxIdempotencyKey = 255

// idempotencyKey returns the idempotency key, or "". The key is defined as an RFC 9651 string
// (draft-ietf-httpapi-idempotency-key-header-07). The quotation marks are optional here, because many clients omit them.
func idempotencyKey(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", problem.BadRequest.New("the request has more than one " + filter.HeaderIdempotencyKey + " header")
	}
	key := strings.TrimSpace(values[0])
	if strings.HasPrefix(key, `"`) {
		item, err := httpsfv.UnmarshalItem(values)
		text, ok := item.Value.(string)
		if err != nil || !ok {
			return "", problem.BadRequest.New("the " + filter.HeaderIdempotencyKey + " is not a valid string (RFC 9651)")
		}
		key = text
	} else if strings.ContainsAny(key, "\", \t;") {
		return "", problem.BadRequest.New("the " + filter.HeaderIdempotencyKey + " is not a valid string (RFC 9651)")
	}
	if key == "" || len(key) > maxIdempotencyKey {
		return "", problem.BadRequest.Newf("the %s must have 1 to %d bytes", filter.HeaderIdempotencyKey, maxIdempotencyKey)
	}
	return key, nil
}
