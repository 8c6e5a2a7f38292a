package admin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Guard authenticates and authorizes operators and records what they read and change. All fields except Audit are required.
type Guard struct {
	// Admins returns the admins in force. If there are any, everything except probes and metrics requires a token.
	Admins func() *Directory
	// Attempts limits how often an address may present an invalid token.
	Attempts *ratelimit.AddressLimiter
	// Audit records every change before and after it is made; nil disables auditing.
	Audit *audit.Log
	// Logger logs every change and every invalid token.
	Logger *slog.Logger
	Now    func() time.Time
}

// guarded admits principals that have the endpoint's role and access to its organisation.
func (g *Guard) guarded(r *adminapi.Endpoint, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		s, err := g.AuthenticateRequest(req, req.Header.Get("Authorization"))
		if err != nil {
			reject(w, err)
			return
		}
		q := req.URL.Query()
		org, err := g.admit(req.Context(), r, s, q.Get("org"))
		if err != nil {
			fail(w, err)
			return
		}
		if org != q.Get("org") { // the record of a change names it
			q.Set("org", org)
			req.URL.RawQuery = q.Encode()
		}
		s.StillAllowed = g.still(r, req, org)
		next(w, attach(req, s))
	}
}

// still returns a function that reports whether the principal of a request may still call an endpoint for an organisation.
func (g *Guard) still(r *adminapi.Endpoint, req *http.Request, org string) func(context.Context) bool {
	token := bearer(req.Header.Get("Authorization"))
	return func(ctx context.Context) bool {
		if g.Admins().IsOpen() {
			return true
		}
		s, err := g.Authenticate(ctx, token)
		if err != nil {
			return false
		}
		now, err := r.Admit(s, org)
		return err == nil && now == org
	}
}

// admit calls Admit of an endpoint and logs refusals.
func (g *Guard) admit(ctx context.Context, r *adminapi.Endpoint, s adminapi.Principal, org string) (string, error) {
	org, err := r.Admit(s, org)
	if err != nil {
		g.Logger.WarnContext(ctx, "admin refused", "who", s.Name, "client.address", s.Peer.String(), "http.request.method", r.Method(),
			"url.path", r.Path(), "reason", err.Error())
	}
	return org, err
}

// bearer returns the token in an Authorization header, or "" for another scheme (RFC 9110, section 11.4).
func bearer(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}

// TokenError is the error for a rejected token. It contains the status of the response.
type TokenError struct {
	adminapi.RefusedError

	// Wait is the time until another attempt can succeed, or 0 if waiting does not help.
	Wait time.Duration
}

// Unwrap returns the refusal.
func (e TokenError) Unwrap() error { return e.RefusedError }

// rejected returns the error for a rejected token.
func rejected(status int, reason string, wait time.Duration) TokenError {
	return TokenError{adminapi.RefusedError{Status: status, Reason: reason}, wait}
}

// AuthenticateRequest returns the principal of a request, given its Authorization header, or a [TokenError]. If no token is required, the
// Host must be an address or localhost. This protects against DNS rebinding, with which a page of another site could point its own name to
// this address and have the browser treat the responses as its own.
//
// To slow down guessing, an address that has presented too many invalid tokens receives 429 for each further invalid token. Valid tokens
// are always accepted, so that an admin can revoke keys at any time.
func (g *Guard) AuthenticateRequest(r *http.Request, authorization string) (adminapi.Principal, error) {
	if g.Admins().IsOpen() {
		if !fixedHost(r.Host) {
			return adminapi.Principal{}, rejected(http.StatusMisdirectedRequest,
				"if no admin token is configured, requests must address the host by IP address or as localhost", 0)
		}
		s := g.reaching(openAdmin())
		s.Peer = PeerOf(r)
		return s, nil
	}
	peer := PeerOf(r)
	s, err := g.Authenticate(r.Context(), bearer(authorization))
	if s.Peer = peer; err == nil || authorization == "" {
		return s, err
	}
	if refused, ok := errors.AsType[TokenError](err); ok && refused.Status == http.StatusUnauthorized {
		if ok, wait := g.Attempts.Take(peer); !ok {
			return s, rejected(http.StatusTooManyRequests, "too many invalid admin tokens from this address", wait)
		}
	}
	g.Logger.WarnContext(r.Context(), "invalid admin token", "client.address", peer.String(), "http.request.method", r.Method, "url.path",
		r.URL.Path, "reason", err.Error())
	return s, err
}

// Authenticate returns the admin that a token identifies, or a [TokenError]. It does not count invalid tokens.
func (g *Guard) Authenticate(ctx context.Context, token string) (adminapi.Principal, error) {
	return g.AuthenticateAt(ctx, token, g.Now())
}

// AuthenticateAt is like Authenticate, for a token that was presented at an earlier time. The token may have expired since that time, but
// must not be revoked.
func (g *Guard) AuthenticateAt(ctx context.Context, token string, at time.Time) (adminapi.Principal, error) {
	s, err := adminapi.Principal{}, errUnknown
	if token != "" {
		s, err = g.Admins().Find(ctx, token, at)
	}
	switch {
	case err == nil:
		return g.reaching(s), nil
	case errors.Is(err, identity.ErrIssuerUnavailable):
		return adminapi.Principal{}, rejected(http.StatusServiceUnavailable, identity.ErrIssuerUnavailable.Error(), issuerWait)
	case errors.Is(err, errNoRole) || errors.Is(err, errNoName):
		return adminapi.Principal{}, rejected(http.StatusForbidden, err.Error(), 0)
	}
	return adminapi.Principal{}, rejected(http.StatusUnauthorized, errUnknown.Error(), 0)
}

// issuerWait limits the time to wait for an issuer that does not respond.
const issuerWait = 5 * time.Second

// reaching returns a principal with the organisations it can access.
func (g *Guard) reaching(s adminapi.Principal) adminapi.Principal {
	s.Orgs, s.Now = g.Admins().orgs, g.Now()
	return s
}

// reject responds with the refusal of a token.
func reject(w http.ResponseWriter, err error) {
	refused, _ := errors.AsType[TokenError](err)
	SetRetryAfter(w, refused.Wait)
	if refused.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	refuse(w, refused.Status, refused.Reason)
}

// SetRetryAfter sets the Retry-After header to whole seconds, unless wait is 0.
func SetRetryAfter(w http.ResponseWriter, wait time.Duration) {
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
}

// Invoke implements [adminapi.Invoker]. Unlike [adminapi.Endpoint.Invoke], it logs refusals and audits changes and reads of
// callers' records. If the audit log cannot be written, changes are refused.
func (g *Guard) Invoke(ctx context.Context, r *adminapi.Endpoint, s adminapi.Principal, values url.Values, body []byte) (any, error) {
	org, err := g.admit(ctx, r, s, values.Get("org"))
	if err != nil {
		return nil, err
	}
	if org != values.Get("org") && r.Subject == adminapi.SubjectOrg {
		values.Set("org", org)
	}
	if !r.Mutates {
		g.watch(ctx, r, s, values)
		return r.Invoke(ctx, s, values, body)
	}
	query := values.Encode()
	var seq int64
	if g.Audit != nil {
		if seq, err = g.Audit.Intent(audit.Record{Who: s.Name, Peer: s.Peer.String(), Operation: r.Pattern, Query: query}); err != nil {
			g.Logger.ErrorContext(ctx, "cannot write the audit log", "error", err)
			return nil, adminapi.RefusedError{Status: http.StatusServiceUnavailable, Reason: "cannot write the audit log, so changes are refused"}
		}
	}
	answer, err := r.Invoke(ctx, s, values, body)
	status, _ := adminapi.StatusOf(err)
	status = cmp.Or(status, r.Success())
	if g.Audit != nil {
		result := audit.Record{Status: status}
		if subject, ok := answer.(audit.Subject); ok && err == nil {
			result.Kind, result.Resource, result.Summary = subject.AuditSubject()
		}
		if err := g.Audit.Result(seq, result); err != nil {
			g.Logger.ErrorContext(ctx, "cannot write the audit log", "error", err)
		}
	}
	g.Logger.LogAttrs(ctx, slog.LevelInfo, "admin change", slog.String("who", s.Name), slog.String("client.address", s.Peer.String()),
		slog.String("http.request.method", r.Method()), slog.String("url.path", r.Path()),
		slog.String("url.query", query), slog.Int("http.response.status_code", status))
	return answer, err
}

// watch audits a read of callers' records. If the log cannot be written, the read is allowed nevertheless, because operators may
// need it to repair the log.
func (g *Guard) watch(ctx context.Context, r *adminapi.Endpoint, s adminapi.Principal, values url.Values) {
	if !r.AuditsReads || g.Audit == nil {
		return
	}
	if err := g.Audit.Read(audit.Record{Who: s.Name, Peer: s.Peer.String(), Operation: r.Pattern, Query: audit.ReadQuery(values)}); err != nil {
		g.Logger.ErrorContext(ctx, "cannot write the audit log", "error", err)
	}
}

// PeerOf returns the remote address of a request, or the zero Addr if the request lacks an address.
func PeerOf(r *http.Request) netip.Addr {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	return addr.Addr().Unmap()
}

// fixedHost reports whether a Host header is an address or "localhost", which always refers to this machine.
func fixedHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}
