package money

import (
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// StreamOptions remembers the endpoints whose servers reject the member stream_options, with which the gateway asks for a usage report at
// the end of a stream. It is safe for concurrent use.
type StreamOptions struct {
	now   func() time.Time
	until *lru.Cache[string, time.Time]
}

const (
	// maxRefusals is the number of endpoints remembered.
	maxRefusals = 4096
	// refusalTTL is the time that an endpoint is remembered. It is limited because the server may be replaced.
	refusalTTL = time.Hour
)

// NewStreamOptions returns an empty StreamOptions that uses the given clock.
func NewStreamOptions(now func() time.Time) *StreamOptions {
	until, _ := lru.New[string, time.Time](maxRefusals) // lru.New fails only for a size below 1
	return &StreamOptions{now, until}
}

// refused reports whether the endpoint of a call is remembered.
func (r *StreamOptions) refused(ex *filter.Exchange) bool {
	until, known := r.until.Get(refusalKey(ex))
	return known && r.now().Before(until)
}

// markRefused remembers the endpoint of a call that was accepted only without stream_options.
func (r *StreamOptions) markRefused(ex *filter.Exchange) {
	if ex.Out.Resent && ex.Event.UpstreamStatus != 0 && ex.Event.UpstreamStatus < 300 {
		r.until.Add(refusalKey(ex), r.now().Add(refusalTTL))
	}
}

// refusalKey identifies an endpoint and the operation of a call, because the operations of one server may differ.
func refusalKey(ex *filter.Exchange) string {
	return strings.Join([]string{ex.Caller.Org, ex.Params["id"], ex.Operation.ID}, "\x00")
}
