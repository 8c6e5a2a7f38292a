package graphql

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// exchange is one request in progress, with the v2 objects that were read for it. Its methods may be called concurrently by several root
// fields.
type exchange struct {
	*legacy.Session
	api *API
	in  *translate.Incoming
	// meter counts the v2 calls of the request.
	meter *meter
}

// meter is a Caller that counts calls and refuses calls beyond the limit.
type meter struct {
	next  translate.Caller
	most  int
	calls atomic.Int64
}

// maxID is the maximum length of an id sent to v2. Existing ids have about ten characters.
const maxID = 200

// Call implements translate.Caller.
func (m *meter) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.calls.Add(1) > int64(m.most) {
		return nil, engine.LimitExceeded("calls", m.most, "platform calls")
	}
	for _, value := range r.Params {
		if len(value) > maxID { // no resource has such an id
			return &translate.Response{Status: http.StatusNotFound}, nil
		}
	}
	return m.next.Call(ctx, r)
}

// anonymous reports whether the request has no credential.
func (x *exchange) anonymous() bool { return x.in.Account == "" }

// user returns a substitute for the user id of the account.
func (x *exchange) user() string { return translate.UserID(x.in.Account) }

func (x *exchange) config() *Config { return &x.api.cfg }

// isStatus reports whether err represents a v2 response with the given status.
func isStatus(err error, status int) bool {
	return err != nil && asFault(err).Status == status
}
