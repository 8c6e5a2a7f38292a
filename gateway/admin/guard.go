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

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
)

// Attempts bounds failed attempts by address, as ratelimit.AddressLimiter does.
type Attempts interface {
	// Take takes one attempt. It reports whether the address had one left and, if
	// not, when it will; a refusal takes nothing.
	Take(addr netip.Addr) (ok bool, retryAfter time.Duration)
	// Return gives back an attempt that has not failed.
	Return(addr netip.Addr)
}

// guarded admits askers with the role of a row, and its organisation if they are bound to one.
func (d Deps) guarded(r *row.Row, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		s, err := d.Identify(req, req.Header.Get("Authorization"))
		if err != nil {
			reject(w, err)
			return
		}
		q := req.URL.Query()
		org, err := d.admit(req.Context(), r, s, peerOf(req), q.Get("org"))
		if err != nil {
			fail(w, err)
			return
		}
		if org != q.Get("org") { // the record of a change names it
			q.Set("org", org)
			req.URL.RawQuery = q.Encode()
		}
		s.Still = d.still(r, req, org)
		d.watch(req.Context(), r, s.Name, peerOf(req), valuesOf(r, req))
		next(w, attach(req, s))
	}
}

// still returns a function that reports whether the asker of a request may still ask a row about an organisation.
func (d Deps) still(r *row.Row, req *http.Request, org string) func(context.Context) bool {
	token := bearer(req.Header.Get("Authorization"))
	return func(ctx context.Context) bool {
		if d.Admins().Open() {
			return true
		}
		s, err := d.Holder(ctx, token)
		if err != nil {
			return false
		}
		now, err := r.Admit(s, org)
		return err == nil && now == org
	}
}

// admit is Admit of a row. It logs refusals.
func (d Deps) admit(ctx context.Context, r *row.Row, s row.Scope, peer netip.Addr, org string) (string, error) {
	org, err := r.Admit(s, org)
	if err != nil {
		d.Logger.WarnContext(ctx, "admin refused", "who", s.Name, "client.address", peer.String(), "http.request.method", r.Method(), "url.path", r.Path(), "reason", err.Error())
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
	row.RefusedError

	// Wait is the time until another attempt can succeed, 0 where waiting does not help.
	Wait time.Duration
}

// Identify returns the asker of a request by the value of its header Authorization. The error is a [TokenError]. Without any admin it asks
// for a host that no page elsewhere can have: a name can be pointed to this address behind a browser's back, which then takes that page
// for ours (DNS rebinding).
//
// Guessing is slow: an address with too many wrong tokens gets 429 for each further one. The right one passes despite its address's requests
// before, so that a key can always be revoked.
func (d Deps) Identify(r *http.Request, authorization string) (row.Scope, error) {
	if d.Admins().Open() {
		if !fixedHost(r.Host) {
			return row.Scope{}, TokenError{RefusedError: row.RefusedError{Status: http.StatusMisdirectedRequest, Reason: "without an admin token, ask by address or as localhost"}}
		}
		return d.reaching(openAdmin()), nil
	}
	s, err := d.Holder(r.Context(), bearer(authorization))
	if err == nil || authorization == "" {
		return s, err
	}
	peer := peerOf(r)
	if refused, ok := errors.AsType[TokenError](err); ok && refused.Status == http.StatusUnauthorized {
		if ok, wait := d.Attempts.Take(peer); !ok {
			return s, TokenError{row.RefusedError{Status: http.StatusTooManyRequests, Reason: "too many wrong admin tokens came from this address"}, wait}
		}
	}
	d.Logger.WarnContext(r.Context(), "wrong admin token", "client.address", peer.String(), "http.request.method", r.Method, "url.path", r.URL.Path, "reason", err.Error())
	return s, err
}

// Holder returns the admin with a token. The error is a [TokenError]. It does not count wrong tokens.
func (d Deps) Holder(ctx context.Context, token string) (row.Scope, error) {
	return d.HolderAt(ctx, token, d.Now())
}

// HolderAt is Holder for a token that was presented at a time. The token of an issuer may have expired since, and must not be revoked.
func (d Deps) HolderAt(ctx context.Context, token string, at time.Time) (row.Scope, error) {
	s, err := row.Scope{}, errUnknown
	if token != "" {
		s, err = d.Admins().Find(ctx, token, at)
	}
	switch {
	case err == nil:
		return d.reaching(s), nil
	case errors.Is(err, oidc.ErrUnavailable):
		return row.Scope{}, TokenError{row.RefusedError{Status: http.StatusServiceUnavailable, Reason: oidc.ErrUnavailable.Error()}, issuerWait}
	case errors.Is(err, errNoRole) || errors.Is(err, errNoName):
		return row.Scope{}, TokenError{RefusedError: row.RefusedError{Status: http.StatusForbidden, Reason: err.Error()}}
	}
	return row.Scope{}, TokenError{RefusedError: row.RefusedError{Status: http.StatusUnauthorized, Reason: errUnknown.Error()}}
}

// issuerWait is how long to wait for an issuer that does not answer.
const issuerWait = 5 * time.Second

// reaching returns an asker with the organisations that can be asked about.
func (d Deps) reaching(s row.Scope) row.Scope {
	s.Orgs, s.Now = d.Orgs(), d.Now()
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

// recorded records the changes of a request.
func (d Deps) recorded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := change{who: asking(r).Name, peer: peerOf(r).String(), method: r.Method, path: r.URL.Path, query: r.URL.Query().Encode()}
		err := d.record(r.Context(), c, func() int {
			seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
			next(seen, r)
			return seen.status
		})
		if err != nil {
			fail(w, err)
		}
	}
}

// watch records each look at the records of callers. A log that cannot be written refuses no look: that would hide the records from those
// who mend it.
func (d Deps) watch(ctx context.Context, r *row.Row, who string, peer netip.Addr, values url.Values) {
	if !r.Watched || d.Audit == nil {
		return
	}
	if err := d.Audit.Read(audit.Record{Who: who, Peer: peer.String(), Operation: r.Pattern, Query: audit.Look(values)}); err != nil {
		d.Logger.ErrorContext(ctx, "the audit log cannot be written", "error", err)
	}
}

// change names the author, the subject and the address of a change.
type change struct{ who, peer, method, path, query string }

// record makes a change, and records it in the log and in the audit log, with the status that act returns. A change that the audit log
// does not take is not made: the error is a [row.RefusedError].
func (d Deps) record(ctx context.Context, c change, act func() int) error {
	var seq int64
	if d.Audit != nil {
		var err error
		seq, err = d.Audit.Intent(audit.Record{Who: c.who, Peer: c.peer, Operation: c.method + " " + c.path, Query: c.query})
		if err != nil {
			d.Logger.ErrorContext(ctx, "the audit log cannot be written", "error", err)
			return row.RefusedError{Status: http.StatusServiceUnavailable, Reason: "what is changed must be recorded, and cannot be at the moment"}
		}
	}
	status := act()
	if d.Audit != nil {
		if err := d.Audit.Result(seq, audit.Record{Status: status}); err != nil {
			d.Logger.ErrorContext(ctx, "the audit log cannot be written", "error", err)
		}
	}
	d.Logger.LogAttrs(ctx, slog.LevelInfo, "admin change", slog.String("who", c.who), slog.String("client.address", c.peer),
		slog.String("http.request.method", c.method), slog.String("url.path", c.path),
		slog.String("url.query", c.query), slog.Int("http.response.status_code", status))
	return nil
}

// Ask asks a row for an asker at an address, with parameters and the content of the request. Like the row's route, it refuses
// without the role, and records a change.
func (d Deps) Ask(ctx context.Context, r *row.Row, s row.Scope, peer netip.Addr, values url.Values, body []byte) (answer any, err error) {
	org, err := d.admit(ctx, r, s, peer, values.Get("org"))
	if err != nil {
		return nil, err
	}
	if org != "" && r.About == row.OfOrg {
		values.Set("org", org)
	}
	if !r.Changes {
		d.watch(ctx, r, s.Name, peer, values)
		return r.Reply(ctx, s, values, body)
	}
	c := change{who: s.Name, peer: peer.String(), method: r.Method(), path: r.Path(), query: values.Encode()}
	if unrecorded := d.record(ctx, c, func() int {
		answer, err = r.Reply(ctx, s, values, body)
		status, _ := StatusOf(err)
		return cmp.Or(status, r.Status, http.StatusOK)
	}); unrecorded != nil {
		return nil, unrecorded
	}
	return answer, err
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
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
