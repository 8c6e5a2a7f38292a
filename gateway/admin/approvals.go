package admin

import (
	"context"
	"net/http"
	"time"
)

// Approvals shows and answers the requests for approval of an organisation. All return
// ErrNoOrg for one that is not configured; Grant and Deny a BadRequestError for what
// cannot be answered so.
type Approvals interface {
	List(ctx context.Context, org string) (requests any, err error)
	Grant(ctx context.Context, org string, a Approval) (request any, err error)
	Deny(ctx context.Context, org string, a Approval) (request any, err error)
}

// Approval is an operator's answer to a request.
type Approval struct {
	// ID is the request's, By who answers it.
	ID, By, Reason string
	// For is how long the grant can be used, 0 for an hour.
	For time.Duration
	// MaxUSD bounds the price of the call; "" is what it cost when it was
	// refused.
	MaxUSD string
}

func (d Deps) approvals(r *http.Request) (any, error) {
	list, err := d.Approvals.List(r.Context(), r.URL.Query().Get("org"))
	return map[string]any{"approvals": list}, err
}

func (d Deps) grant(r *http.Request) (any, error) { return answer(r, d.Approvals.Grant) }

func (d Deps) deny(r *http.Request) (any, error) { return answer(r, d.Approvals.Deny) }

func answer(r *http.Request, do func(context.Context, string, Approval) (any, error)) (any, error) {
	q := r.URL.Query()
	by, err := asking(r).signs(q.Get("by"))
	if err != nil {
		return nil, err
	}
	a := Approval{ID: q.Get("id"), By: by, Reason: q.Get("reason"), MaxUSD: q.Get("max_usd")}
	if text := q.Get("for"); text != "" {
		if a.For, err = time.ParseDuration(text); err != nil {
			return nil, BadRequestError{Reason: "for: want a duration such as 1h"}
		}
	}
	return do(r.Context(), q.Get("org"), a)
}
