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

// problemOf maps an error of any package to the problem that the caller may see.
// An unforeseen error is a 500 with fixed text; its cause goes to the log.
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
		p := problem.BadSyntax.New("the body is not acceptable JSON")
		p.Errors = []string{e.Error()}
		return p
	}
	switch {
	case errors.Is(err, route.ErrNotFound):
		return problem.NotFound.New(textNoPath)
	case errors.Is(err, identity.ErrUnknown):
		p := problem.Unauthorized.New("unknown key")
		if err != identity.ErrUnknown { //nolint:errorlint // the log is told what else is known
			p = p.Because(err)
		}
		return p
	case errors.Is(err, ratelimit.ErrUnavailable):
		return problem.LimitsUnavailable.New("the rate limits cannot be checked at the moment").
			With("Retry-After", "1").Because(err)
	case errors.Is(err, upstream.ErrCredential):
		return problem.UpstreamRefused.New("the platform refused the gateway's credential for this organisation").Because(err)
	case errors.Is(err, upstream.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return problem.UpstreamTimeout.New("the platform did not answer in time").Because(err)
	case errors.Is(err, upstream.ErrUnreachable), errors.Is(err, context.Canceled):
		return problem.UpstreamFailed.New("the platform could not be reached or broke off").Because(err)
	}
	return problem.Internal.New(http.StatusText(http.StatusInternalServerError)).Because(err)
}
