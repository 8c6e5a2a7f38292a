package filter

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/translate"
)

// Authenticate identifies the caller. A request carries at most one credential, a key or a
// token of an issuer, and may come with a certificate, which says who calls without
// one: as a Bearer token (RFC 6750, section 2.1), or on the GraphQL route alternatively
// the api_key parameter its clients send. Elsewhere that parameter identifies
// no caller, and beside a token it is a second credential all the same.
type Authenticate struct {
	// Keyless is the id of the organisation that answers GraphQL callers without a
	// key, "" for none.
	Keyless string
	// Guard slows down addresses that fail; required.
	Guard *Guard
}

// apiKey is the GraphQL credential parameter.
const apiKey = "api_key"

// Name implements Filter.
func (Authenticate) Name() string { return "identify" }

// Request sets Tenant and Caller, unless a dry run has named it. It refuses with 401, with 429 if the address failed too
// often, and with 400 when there is more than one credential.
func (f Authenticate) Request(ctx context.Context, ex *Exchange) error {
	if ex.Caller == nil {
		if err := f.authenticate(ctx, ex); err != nil || ex.Caller == nil {
			return err
		}
	}
	c := ex.Caller
	ex.Tenant = ex.pipeline.Callers.Tenants[c.Org]
	ex.Event.Org, ex.Event.Team, ex.Event.Key, ex.Event.Subject = c.Org, c.Team, c.Key, c.Subject
	return nil
}

// authenticate sets the caller, nil where none is needed.
func (f Authenticate) authenticate(ctx context.Context, ex *Exchange) error {
	key, err := credential(ex)
	if err != nil && !errors.Is(err, identity.ErrUnknown) {
		return err
	}
	directory, chain := ex.pipeline.Callers.Directory, ex.In.Certificates
	if err != nil {
		chain = nil // a credential that is none is not replaced by another
	}
	if err == nil && key == "" && chain == nil && ex.Route != nil && ex.Route.Public && !directory.RequiresCertificate() {
		if ex.Dialect != route.GraphQL {
			return nil
		}
		if err := f.Guard.countAnonymous(ex.In.Peer); err != nil {
			return err
		}
		ex.Tenant = ex.pipeline.Callers.Tenants[f.Keyless] // nil where nobody answers: only what nothing is asked for is
		return nil
	}
	caller, err := directory.Find(ctx, identity.Credentials{Key: key, Chain: chain, Peer: ex.In.Peer, Presented: ex.In.Authenticated}, ex.In.Received)
	if err != nil {
		ex.Admission.tokenRejected = identity.IsToken(key) && !errors.Is(err, identity.ErrUnavailable)
		return f.refuse(ex, key, err)
	}
	caller.MarkUsed(ex.In.Received)
	ex.Caller = caller
	return nil
}

// refuse returns the refusal of a credential for which no caller was found. An attempt
// of its address is a credential that was judged and is wrong, or missing: not one that
// could not be judged, nor a verified token that is of no caller.
func (f Authenticate) refuse(ex *Exchange, key string, err error) error {
	_, certificate := errors.AsType[*identity.CertificateError](err)
	token, isToken := errors.AsType[*identity.TokenError](err)
	switch {
	case errors.Is(err, identity.ErrUnavailable):
		return problem.IssuerUnavailable.New("the token cannot be verified at the moment").With("Retry-After", "10").Because(err)
	case ex.pipeline.Callers.Incomplete && !certificate && !identity.IsToken(key):
		return problem.KeysUnavailable.New("the keys made at run time cannot be read at the moment").With("Retry-After", "1").Because(err)
	case isToken && token.Verified:
		return err
	}
	if slow := f.Guard.countFailure(ex.In.Peer); slow != nil {
		return slow
	}
	if key == "" && err == identity.ErrUnknown { //nolint:errorlint // a fault of a certificate is shown as an unknown key
		return problem.Unauthorized.New(translate.MissingKeyText).Because(err)
	}
	return err
}

// Response tells callers which credential a 401 asks for (RFC 9110, section 15.5.2) and
// whether another token is needed (RFC 6750, section 3.1), and gives a question without a key back that was not answered.
func (f Authenticate) Response(_ context.Context, ex *Exchange) error {
	if ex.Response.Status == http.StatusUnauthorized {
		challenge := "Bearer"
		if ex.Admission.tokenRejected {
			challenge += ` error="invalid_token"`
		}
		ex.Response.Header.Set("WWW-Authenticate", challenge)
	}
	failed := func(call *Exchange) bool { return call.Event.Outcome != telemetry.OutcomeOK }
	if ex.Caller == nil && ex.Tenant != nil && (ex.Response.Status != http.StatusOK || slices.ContainsFunc(ex.Calls, failed)) {
		f.Guard.returnAnonymous(ex.In.Peer)
	}
	return nil
}

// Notes implements Noter.
func (Authenticate) Notes(ex *Exchange, _ string) []string {
	if ex.Caller == nil {
		return nil
	}
	c := ex.Caller
	parts := []string{"organisation " + c.Org}
	for _, part := range []struct{ what, name string }{{"team ", c.Team}, {"key ", c.Key}, {"roles ", strings.Join(c.RoleNames(), ", ")}} {
		if part.name != "" {
			parts = append(parts, part.what+part.name)
		}
	}
	return []string{strings.Join(parts, ", ")}
}

// credential returns the one credential of a request, "" without any.
func credential(ex *Exchange) (string, error) {
	headers := ex.In.Header["Authorization"]
	query := ex.Query
	if ex.Route == nil {
		// An unmatched request has no parsed query, and still needs its
		// caller.
		var err error
		query, err = route.ParseQuery(ex.In.Query)
		if err != nil && ex.Dialect == route.GraphQL {
			return "", err // elsewhere Routed refuses it, once it is counted
		}
	}
	params := query[apiKey]
	ex.Query = without(ex.Query, apiKey)
	if len(headers)+len(params) > 1 {
		return "", problem.BadRequest.New("the request carries more than one credential")
	}
	if len(params) == 1 {
		if ex.Dialect != route.GraphQL {
			return "", identity.ErrUnknown
		}
		return params[0], nil
	}
	if len(headers) == 0 {
		return "", nil
	}
	return bearer(headers[0], ex.Dialect)
}

// bearer reads an Authorization header. Anything but one Bearer token is an
// unknown key. Clients of GraphQL and of the run interface also send the bare token (reference platform-v2, section 12).
func bearer(h string, dialect route.Dialect) (string, error) {
	scheme, token, ok := strings.Cut(h, " ")
	token = strings.TrimLeft(token, " ") // RFC 9110, section 11.4
	switch {
	case ok && strings.EqualFold(scheme, "Bearer") && token != "":
		return token, nil
	case !ok && h != "" && (dialect == route.GraphQL || dialect.IsRun()):
		return h, nil
	default:
		return "", identity.ErrUnknown
	}
}

// without returns q lacking one name; q itself stays as it is.
func without(q url.Values, name string) url.Values {
	if !q.Has(name) {
		return q
	}
	rest := make(url.Values, len(q))
	for k, v := range q {
		if k != name {
			rest[k] = v
		}
	}
	return rest
}
