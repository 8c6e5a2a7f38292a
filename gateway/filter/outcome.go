package filter

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// SettleTimeout is the time limit for settling a call. Settlement continues even if the caller disconnects.
const SettleTimeout = 5 * time.Second

// IsFailureStatus reports whether a status is 408, 425, 500 or 503, which mean that the call failed, or came too early or too late. After
// such a status, the gateway checks once whether the call had an effect.
func IsFailureStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusInternalServerError, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// IsRefusalStatus reports whether a status means that the call had no effect. It returns true for every 4xx status except 408 and 425,
// which count as failures. After statuses such as 502 and 504, the outcome is unknown.
func IsRefusalStatus(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError && !IsFailureStatus(status)
}

// Reply sets the response, which ends the request phase.
func (ex *Exchange) Reply(a *Response) { ex.Response = a }

// Adopt sets the response to 201 with the given resource, which was created by a call whose response was lost. It sets ex.Adopted, and
// removes an earlier refusal from the exchange and its event.
func (ex *Exchange) Adopt(found map[string]any) error {
	body, err := strictjson.Append(nil, found)
	if err != nil {
		return fmt.Errorf("encode the created resource: %w", err)
	}
	ex.Adopted, _ = found["id"].(string)
	ex.Response = &Response{Status: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Relayed: true}
	ex.Faults = nil
	e := ex.Event
	e.Outcome, e.Refusal, e.Stage, e.Detail = "", "", "", ""
	return nil
}

// Settle writes a settlement to the ledger, even if the caller has disconnected.
func (ex *Exchange) Settle(ctx context.Context, s *ledger.Settlement) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	return ex.Ports.Ledger.Settle(ctx, ex.Caller.Org, s)
}

// RecordFailure sets the cause of the event to err, unless err is nil or the event already has a cause. It does not change the response.
func (ex *Exchange) RecordFailure(err error) {
	if err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
}
