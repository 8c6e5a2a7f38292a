package filter

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// SettleTimeout bounds the settlement of a call, which its caller does not wait for
// to be made: it is made even when the caller has left.
const SettleTimeout = 5 * time.Second

// IsFailureStatus reports whether the platform says by a status that a call failed, or that it came
// too late or too early: the gateway looks for its effect once.
func IsFailureStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusInternalServerError, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// IsRefusalStatus reports whether the platform says by a status that it has done nothing.
func IsRefusalStatus(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError && !IsFailureStatus(status)
}

// Reply makes a the exchange's answer, which ends its request phase.
func (ex *Exchange) Reply(a *Response) { ex.Response = a }

// Adopt makes a resource that was found the answer to its create.
func (ex *Exchange) Adopt(found map[string]any) error {
	body, err := strictjson.Append(nil, found)
	if err != nil {
		return fmt.Errorf("encode what was found: %w", err)
	}
	ex.Adopted, _ = found["id"].(string)
	ex.Response = &Response{Status: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Relayed: true}
	ex.Faults = nil
	e := ex.Event
	e.Outcome, e.Refusal, e.Stage, e.Detail = "", "", "", ""
	return nil
}

// Settle writes a settlement to the ledger, even if the caller has left.
func (ex *Exchange) Settle(ctx context.Context, s *ledger.Settlement) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	return ex.Ports.Ledger.Settle(ctx, ex.Caller.Org, s)
}

// RecordFailure keeps the cause of a failure that does not change the answer, unless one is kept.
func (ex *Exchange) RecordFailure(err error) {
	if err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
}
