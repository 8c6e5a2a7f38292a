package idempotency

import (
	"context"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Deduplicate is the stage that answers repeats of creates; see [Deduplicator]. The intent of a call is noted with its reservation.
// Without the port no call has an intent: every request of a dry run is the first.
type Deduplicate struct{}

// stageIdempotency is the name of the stage.
const stageIdempotency = "once"

// Name implements Filter.
func (Deduplicate) Name() string { return stageIdempotency }

// Request answers a repeat of a request with a key. It refuses with 400 a key that is
// none, with 422 one that was used for another request, with 409 the repeat of a call
// that is under way, and with 503 a key while the store cannot be asked.
func (Deduplicate) Request(ctx context.Context, ex *filter.Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if !row.Once(ex.Body.Doc) {
		return nil
	}
	key, err := idempotencyKey(ex.In.Header[filter.HeaderIdempotencyKey])
	if err != nil || ex.Ports.Intents == nil || key == "" && row.Verb != operation.VerbCreate {
		return err
	}
	return ex.Ports.Intents.Enter(ctx, ex, key)
}

// Response ends the intent.
func (Deduplicate) Response(ctx context.Context, ex *filter.Exchange) error {
	if ex.Idempotency == nil {
		return nil
	}
	return ex.Ports.Intents.End(ctx, ex, nil)
}

// Notes implements Noter.
func (Deduplicate) Notes(ex *filter.Exchange, _ string) []string {
	if ex.Adopted == "" || ex.Sent != filter.NotSent {
		return nil
	}
	return []string{ex.Adopted + " was made by an earlier request whose answer was lost"}
}

// RecoverLost is the stage that finds out the outcome of a create whose answer was lost; see [Deduplicator.Search]. It sees the
// platform's answers as they came.
type RecoverLost struct{}

// Name implements Filter.
func (RecoverLost) Name() string { return "lookup" }

// Request refuses with 503 a call that may have been taken for one of a dead gateway.
func (RecoverLost) Request(_ context.Context, ex *filter.Exchange) error {
	if o := ex.Idempotency; o != nil && o.Recorded && !ex.Ports.Intents.MaySend(o.Intent.ID) {
		return problem.IdempotencyUnavailable.New("the gateway was held up: nothing was sent").With("Retry-After", "1").Because(errPaused)
	}
	return nil
}

// Response replaces an answer that leaves a create open, by the new resource or by
// 504.
func (RecoverLost) Response(ctx context.Context, ex *filter.Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if o := ex.Idempotency; o == nil || !o.Recorded || row.Verb != operation.VerbCreate {
		return nil
	}
	return ex.Ports.Intents.Search(ctx, ex)
}

// maxIdempotencyKey is the longest key, in bytes.
const maxIdempotencyKey = 255

// idempotencyKey reads the key, "" if there is none. The draft has it a string of
// RFC 9651; as clients send it, quotation marks may be missing.
func idempotencyKey(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", problem.BadRequest.New("more than one " + filter.HeaderIdempotencyKey)
	}
	key := strings.TrimSpace(values[0])
	if strings.HasPrefix(key, `"`) {
		item, err := httpsfv.UnmarshalItem(values)
		text, ok := item.Value.(string)
		if err != nil || !ok {
			return "", problem.BadRequest.New("the " + filter.HeaderIdempotencyKey + " is not a string of RFC 9651")
		}
		key = text
	} else if strings.ContainsAny(key, "\", \t;") {
		return "", problem.BadRequest.New("the " + filter.HeaderIdempotencyKey + " is not a string of RFC 9651")
	}
	if key == "" || len(key) > maxIdempotencyKey {
		return "", problem.BadRequest.Newf("the %s must have 1 to %d bytes", filter.HeaderIdempotencyKey, maxIdempotencyKey)
	}
	return key, nil
}
