package graphql

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// exchange is one request under way: the conversation with v2, and the
// objects read there. Its methods may be called from several root fields at once.
type exchange struct {
	*legacy.Session
	api *API
	in  *translate.Incoming
	// meter is the caller below the dialogue.
	meter *meter
}

// meter counts calls and refuses those beyond the limit.
type meter struct {
	next translate.Caller
	most int

	mu    sync.Mutex // guards calls
	calls int
}

// maxID is the longest id sent to v2, whose own have about ten characters.
const maxID = 200

// Call implements translate.Caller.
func (m *meter) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	over := m.calls >= m.most
	if !over {
		m.calls++
	}
	m.mu.Unlock()
	if over {
		return nil, engine.LimitExceeded("calls", m.most, "calls of the platform")
	}
	for _, value := range r.Params {
		if len(value) > maxID { // no resource has such an id
			return &translate.Response{Status: http.StatusNotFound}, nil
		}
	}
	if m.next == nil {
		return nil, fmt.Errorf("no caller: %w", translate.ErrAmbiguous)
	}
	return m.next.Call(ctx, r)
}

// anonymous reports a request without a credential.
func (x *exchange) anonymous() bool { return x.in.Account == "" }

// user is the stand-in for the account's user id.
func (x *exchange) user() string { return translate.UserID(x.in.Account) }

func (x *exchange) config() *Config { return &x.api.cfg }

// isStatus reports a fault that stands for this status of v2.
func isStatus(err error, status int) bool {
	return err != nil && asFault(err).status == status
}
