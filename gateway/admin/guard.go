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

// Guard identifies operators, admits them to rows, and records what they ask and change. All fields but Audit are required.
type Guard struct {
	// Admins returns the admins in force: everything but the probes and metrics
	// requires the token of one, unless there are none.
	Admins func() *Directory
	// Attempts bounds how often an address may present a wrong token.
	Attempts *ratelimit.AddressLimiter
	// Audit records every change before and after it; nil records none.
	Audit *audit.Log
	// Logger receives a line for every change and for every wrong token.
	Logger *slog.Logger
	Now    func() time.Time
}

// guarded admits askers with the role of a row, and its organisation if they are bound to one.
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

// still returns a function that reports whether the asker of a request may still ask a row about an organisation.
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

// admit is Admit of a row. It logs refusals.
func (g *Guard) admit(ctx context.Context, r *adminapi.Endpoint, s adminapi.Principal, org string) (string, error) {
	org, err := r.Admit(s, org)
	if err != nil {
		g.Logger.WarnContext(ctx, "admin refused", "who", s.Name, "client.address", s.Peer.String(), "http.request.method", r.Method(), "url.path", r.Path(), "reason", err.Error())
	}
	return org, err
}

// bearer returns the token of the header Authorization, "" for another scheme (RFC 9110, section 11.4).
func bearer(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}

// TokenError is the refusal of a token, with the status of the answer.
type TokenError struct {
	adminapi.RefusedError

	// Wait is the time until another attempt can succeed, 0 where waiting does not help.
	Wait time.Duration
}

// AuthenticateRequest returns the asker of a request by the value of its header Authorization. The error is a [TokenError]. Without any admin it asks
// for a host that no page elsewhere can have: a name can be pointed to this address behind a browser's back, which then takes that page
// for ours (DNS rebinding).
//
// Guessing is slow: an address with too many wrong tokens gets 429 for each further one. The right one passes despite its address's requests
// before, so that a key can always be revoked.
func (g *Guard) AuthenticateRequest(r *http.Request, authorization string) (adminapi.Principal, error) {
	if g.Admins().IsOpen() {
		if !fixedHost(r.Host) {
			return adminapi.Principal{}, TokenError{RefusedError: adminapi.RefusedError{Status: http.StatusMisdirectedRequest, Reason: "without an admin token, ask by address or as localhost"}}
		}
		s := g.reaching(openAdmin())
		s.Peer = peerOf(r)
		return s, nil
	}
	peer := peerOf(r)
	s, err := g.Authenticate(r.Context(), bearer(authorization))
	if s.Peer = peer; err == nil || authorization == "" {
		return s, err
	}
	if refused, ok := errors.AsType[TokenError](err); ok && refused.Status == http.StatusUnauthorized {
		if ok, wait := g.Attempts.Take(peer); !ok {
			return s, TokenError{adminapi.RefusedError{Status: http.StatusTooManyRequests, Reason: "too many wrong admin tokens came from this address"}, wait}
		}
	}
	g.Logger.WarnContext(r.Context(), "wrong admin token", "client.address", peer.String(), "http.request.method", r.Method, "url.path", r.URL.Path, "reason", err.Error())
	return s, err
}

// Authenticate returns the admin with a token. The error is a [TokenError]. It does not count wrong tokens.
func (g *Guard) Authenticate(ctx context.Context, token string) (adminapi.Principal, error) {
	return g.AuthenticateAt(ctx, token, g.Now())
}

// AuthenticateAt is Holder for a token that was presented at a time. The token of an issuer may have expired since, and must not be revoked.
func (g *Guard) AuthenticateAt(ctx context.Context, token string, at time.Time) (adminapi.Principal, error) {
	s, err := adminapi.Principal{}, errUnknown
	if token != "" {
		s, err = g.Admins().Find(ctx, token, at)
	}
	switch {
	case err == nil:
		return g.reaching(s), nil
	case errors.Is(err, identity.ErrIssuerUnavailable):
		return adminapi.Principal{}, TokenError{adminapi.RefusedError{Status: http.StatusServiceUnavailable, Reason: identity.ErrIssuerUnavailable.Error()}, issuerWait}
	case errors.Is(err, errNoRole) || errors.Is(err, errNoName):
		return adminapi.Principal{}, TokenError{RefusedError: adminapi.RefusedError{Status: http.StatusForbidden, Reason: err.Error()}}
	}
	return adminapi.Principal{}, TokenError{RefusedError: adminapi.RefusedError{Status: http.StatusUnauthorized, Reason: errUnknown.Error()}}
}

// issuerWait is how long to wait for an issuer that does not answer.
const issuerWait = 5 * time.Second

// reaching returns an asker with the organisations that can be asked about.
func (g *Guard) reaching(s adminapi.Principal) adminapi.Principal {
	s.Orgs, s.Now = g.Admins().orgs, g.Now()
	return s
}

// reject answers with the refusal of a token.
func reject(w http.ResponseWriter, err error) {
	refused, _ := errors.AsType[TokenError](err)
	if refused.Wait > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(RetrySeconds(refused.Wait), 10))
	}
	if refused.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	refuse(w, refused.Status, refused.Reason)
}

// RetrySeconds returns a time as the header Retry-After has it: whole seconds, at least one.
func RetrySeconds(wait time.Duration) int64 { return max(1, int64((wait+time.Second-1)/time.Second)) }

// Invoke asks a row for an asker. Unlike [row.Endpoint.Invoke], it logs a refusal of the asker, and records looks at the records of callers and changes. A
// change that the audit log does not take is not made. It implements [row.Invoker].
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
			g.Logger.ErrorContext(ctx, "the audit log cannot be written", "error", err)
			return nil, adminapi.RefusedError{Status: http.StatusServiceUnavailable, Reason: "what is changed must be recorded, and cannot be at the moment"}
		}
	}
	answer, err := r.Invoke(ctx, s, values, body)
	status, _ := adminapi.StatusOf(err)
	status = cmp.Or(status, r.Success())
	if g.Audit != nil {
		if err := g.Audit.Result(seq, audit.Record{Status: status}); err != nil {
			g.Logger.ErrorContext(ctx, "the audit log cannot be written", "error", err)
		}
	}
	g.Logger.LogAttrs(ctx, slog.LevelInfo, "admin change", slog.String("who", s.Name), slog.String("client.address", s.Peer.String()),
		slog.String("http.request.method", r.Method()), slog.String("url.path", r.Path()),
		slog.String("url.query", query), slog.Int("http.response.status_code", status))
	return answer, err
}

// watch records each look at the records of callers. A log that cannot be written refuses no look: that would hide the records from those
// who mend it.
func (g *Guard) watch(ctx context.Context, r *adminapi.Endpoint, s adminapi.Principal, values url.Values) {
	if !r.AuditsReads || g.Audit == nil {
		return
	}
	if err := g.Audit.Read(audit.Record{Who: s.Name, Peer: s.Peer.String(), Operation: r.Pattern, Query: audit.ReadQuery(values)}); err != nil {
		g.Logger.ErrorContext(ctx, "the audit log cannot be written", "error", err)
	}
}

// peerOf returns the address of a request's connection; the zero Addr when it has
// none.
func peerOf(r *http.Request) netip.Addr {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	return addr.Addr().Unmap()
}

// fixedHost reports whether a Host header is an address, or the one name that
// always means this machine.
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
