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
)

// Authenticate determines the caller. A request may have at most one credential: a key or a token, sent as a Bearer token (RFC 6750,
// section 2.1) or, on the GraphQL route, in the api_key query parameter. On other routes, a request with this parameter is refused. If a
// request has no credential, its client certificate identifies the caller.
type Authenticate struct {
	// Keyless is the ID of the organisation used for anonymous GraphQL requests. If it is "", these requests can only use fields that need no
	// organisation.
	Keyless string
	// Guard limits failed attempts per client address. It is required.
	Guard *Guard
}

// apiKey is the name of the query parameter that contains the key of a GraphQL request.
const apiKey = "api_key"

// MissingKeyText is the detail of a 401 for a request without a credential. It must equal translate.MissingKeyText.
const MissingKeyText = "missing key: send it in the header Authorization: Bearer KEY"

// Name implements Filter.
func (Authenticate) Name() string { return "authenticate" }

// Request sets Tenant and Caller. It keeps a caller set by a dry run. It returns 401 for an unknown credential, 429 after too many failed
// attempts from the client address, and 400 for more than one credential.
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

// authenticate sets the caller. It leaves ex.Caller nil on public routes called without a credential.
func (f Authenticate) authenticate(ctx context.Context, ex *Exchange) error {
	key, err := credential(ex)
	if err != nil && !errors.Is(err, identity.ErrUnknown) {
		return err
	}
	directory, chain := ex.pipeline.Callers.Directory, ex.In.Certificates
	if err != nil {
		chain = nil // an invalid credential is not replaced by a certificate
	}
	if err == nil && key == "" && chain == nil && ex.Route != nil && ex.Route.Public && !directory.RequiresCertificate() {
		if ex.Dialect != route.GraphQL {
			return nil
		}
		if err := f.Guard.countAnonymous(ex.In.Peer); err != nil {
			return err
		}
		ex.Tenant = ex.pipeline.Callers.Tenants[f.Keyless] // may be nil: only fields that need no organisation are then served
		return nil
	}
	caller, err := directory.Find(ctx, identity.Credentials{Key: key, Chain: chain, Peer: ex.In.Peer, Presented: ex.In.Authenticated},
		ex.In.Received)
	if err != nil {
		ex.Admission.tokenRejected = identity.IsToken(key) && !errors.Is(err, identity.ErrUnavailable)
		return f.refuse(ex, key, err)
	}
	caller.MarkUsed(ex.In.Received)
	ex.Caller = caller
	return nil
}

// refuse returns the error for a request whose caller was not found. It counts missing and invalid credentials as failed attempts. It does
// not count credentials that could not be checked, or valid tokens that belong to no caller.
func (f Authenticate) refuse(ex *Exchange, key string, err error) error {
	_, certificate := errors.AsType[*identity.CertificateError](err)
	token, isToken := errors.AsType[*identity.TokenError](err)
	switch {
	case errors.Is(err, identity.ErrUnavailable):
		return problem.IssuerUnavailable.New("the token cannot be verified right now; try again later").With("Retry-After", "10").Because(err)
	case ex.pipeline.Callers.Incomplete && !certificate && !identity.IsToken(key):
		return problem.KeysUnavailable.New("the key cannot be checked right now; try again later").With("Retry-After", "1").Because(err)
	case isToken && token.Verified:
		return err
	}
	if slow := f.Guard.countFailure(ex.In.Peer); slow != nil {
		return slow
	}
	if key == "" && err == identity.ErrUnknown { //nolint:errorlint // certificate errors are reported as unknown keys
		return problem.Unauthorized.New(MissingKeyText).Because(err)
	}
	return err
}

// Response adds WWW-Authenticate to a 401 (RFC 9110, section 15.5.2), with error="invalid_token" for a rejected token (RFC 6750, section
// 3.1). If an anonymous request failed, Response subtracts the request from the count of its client address.
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

// Notes implements Explainer.
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

// credential returns the credential of a request, or "".
func credential(ex *Exchange) (string, error) {
	headers := ex.In.Header["Authorization"]
	query := ex.Query
	if ex.Route == nil {
		// The query of an unmatched request has not been parsed, but may contain the credential.
		var err error
		query, err = route.ParseQuery(ex.In.Query)
		if err != nil && ex.Dialect == route.GraphQL {
			return "", err // in other dialects RequireRoute refuses the query after rate limiting
		}
	}
	params := query[apiKey]
	ex.Query = without(ex.Query, apiKey)
	if len(headers)+len(params) > 1 {
		return "", problem.BadRequest.New("the request has more than one credential")
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

// bearer returns the token in an Authorization header, or ErrUnknown if the header is not a Bearer token. Clients of GraphQL and of the run
// interface may omit the scheme (reference platform-v2, section 12).
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

// without returns q without one parameter. It does not change q.
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
