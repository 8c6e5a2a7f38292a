package money

import (
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// Refusing remembers the endpoints whose servers refuse the member stream_options. It is safe for concurrent use.
type Refusing struct {
	now   func() time.Time
	until *lru.Cache[string, time.Time]
}

const (
	// maxRefusing is the number of endpoints that are remembered.
	maxRefusing = 4096
	// refusingFor is how long an endpoint is remembered: it may get another server.
	refusingFor = time.Hour
)

// NewRefusing returns an empty Refusing with a clock.
func NewRefusing(now func() time.Time) (*Refusing, error) {
	until, err := lru.New[string, time.Time](maxRefusing)
	return &Refusing{now, until}, err
}

// has reports whether the endpoint of a call is remembered.
func (r *Refusing) has(ex *filter.Exchange) bool {
	until, known := r.until.Get(refusingKey(ex))
	return known && r.now().Before(until)
}

// see remembers the endpoint of a call that was accepted only without the member.
func (r *Refusing) see(ex *filter.Exchange) {
	if ex.Out.Resent && ex.Event.UpstreamStatus != 0 && ex.Event.UpstreamStatus < 300 {
		r.until.Add(refusingKey(ex), r.now().Add(refusingFor))
	}
}

// refusingKey names an endpoint and the route that was called. Routes of one server differ.
func refusingKey(ex *filter.Exchange) string {
	return strings.Join([]string{ex.Caller.Org, ex.Params["id"], ex.Operation.ID}, "\x00")
}
