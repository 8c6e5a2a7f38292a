package filter

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// problemOf maps an error to the problem that the caller sees. Unknown errors become a 500 with a fixed text; the error itself is logged.
func problemOf(err error) *problem.Problem {
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*route.PathError](err); ok {
		return problem.BadRequest.New(e.Reason)
	}
	if e, ok := errors.AsType[*route.MethodError](err); ok {
		return problem.MethodNotAllowed.New("The requested method is not allowed for this path.").
			With("Allow", strings.Join(e.Allow, ", "))
	}
	if e, ok := errors.AsType[*strictjson.SyntaxError](err); ok {
		p := problem.BadSyntax.New("the body is not valid JSON")
		p.Errors = []string{e.Error()}
		return p
	}
	switch {
	case errors.Is(err, route.ErrNotFound):
		return problem.NotFound.New(textNoPath)
	case errors.Is(err, identity.ErrUnknown):
		p := problem.Unauthorized.New("unknown key")
		if err != identity.ErrUnknown { //nolint:errorlint // keep the details for the log
			p = p.Because(err)
		}
		return p
	case errors.Is(err, ratelimit.ErrUnavailable):
		return problem.LimitsUnavailable.New("the rate limits cannot be checked right now; try again later").
			With("Retry-After", "1").Because(err)
	case errors.Is(err, errWithdrawn):
		return problem.Forbidden.New("the permission for this request was withdrawn while the platform executed it").Because(err)
	case errors.Is(err, errStopping):
		return problem.UpstreamFailed.New("the gateway stopped before the platform sent a complete response").Because(err)
	case errors.Is(err, upstream.ErrCredential):
		return problem.UpstreamRefused.New("the platform rejected the organisation's platform key").Because(err)
	case errors.Is(err, upstream.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return problem.UpstreamTimeout.New("the platform did not respond in time").Because(err)
	case errors.Is(err, upstream.ErrUnreachable), errors.Is(err, context.Canceled):
		return problem.UpstreamFailed.New("the platform did not send a complete response").Because(err)
	}
	return problem.Internal.New(http.StatusText(http.StatusInternalServerError)).Because(err)
}
