package admin

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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
}

// guarded admits those who have the role of a row, and its organisation if they are bound to one.
func (d Deps) guarded(r *row.Row, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		s, ok := d.authenticate(w, req)
		if !ok {
			return
		}
		s.Orgs, s.Now = d.Orgs(), d.Now()
		q := req.URL.Query()
		org, err := r.Admit(s, q.Get("org"))
		if err != nil {
			d.Logger.WarnContext(req.Context(), "admin refused", "who", s.Name, "client.address", peerOf(req).String(), "http.request.method", req.Method, "url.path", req.URL.Path, "reason", err.Error())
			fail(w, err)
			return
		}
		if org != q.Get("org") { // the record of a change names it
			q.Set("org", org)
			req.URL.RawQuery = q.Encode()
		}
		next(w, attach(req, s))
	}
}

// authenticate returns who asks. Without any admin it asks for a host that no page
// elsewhere can have: a name can be pointed to this address behind a browser's back,
// which then takes that page for ours (DNS rebinding). It answers what it refuses, and
// reports false then.
//
// Guessing is slow: an address with too many wrong tokens gets 429 for each further one.
// The right one passes whatever its address sent before, so that a key can
// always be revoked.
func (d Deps) authenticate(w http.ResponseWriter, r *http.Request) (row.Scope, bool) {
	admins := d.Admins()
	if admins.Open() {
		if !fixedHost(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "without an admin token, ask by address or as localhost")
			return row.Scope{}, false
		}
		return openAdmin(), true
	}
	peer := peerOf(r)
	given := r.Header.Get("Authorization")
	err := errUnknown
	if token, ok := strings.CutPrefix(given, "Bearer "); ok {
		var s row.Scope
		if s, err = admins.Find(r.Context(), token, d.Now()); err == nil {
			return s, true
		}
	}
	unjudged, nobody := errors.Is(err, oidc.ErrUnavailable), errors.Is(err, errNoRole) || errors.Is(err, errNoName)
	if given != "" {
		if !unjudged && !nobody {
			if ok, wait := d.Attempts.Take(peer); !ok {
				d.slow(w, wait)
				return row.Scope{}, false
			}
		}
		d.Logger.WarnContext(r.Context(), "wrong admin token", "client.address", peer.String(), "http.request.method", r.Method, "url.path", r.URL.Path, "reason", err.Error())
	}
	switch {
	case unjudged:
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, oidc.ErrUnavailable.Error())
	case nobody:
		refuse(w, http.StatusForbidden, err.Error())
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, errUnknown.Error())
	}
	return row.Scope{}, false
}

func (d Deps) slow(w http.ResponseWriter, wait time.Duration) {
	seconds := max(1, int64((wait+time.Second-1)/time.Second))
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	refuse(w, http.StatusTooManyRequests, "too many wrong admin tokens came from this address")
}

// recorded logs what a request changed, or tried to: who, what, from where and with
// which end. What the audit log does not take is not done.
func (d Deps) recorded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, peer, query := asking(r).Name, peerOf(r).String(), r.URL.Query().Encode()
		var seq int64
		if d.Audit != nil {
			var err error
			seq, err = d.Audit.Intent(audit.Record{Who: who, Peer: peer, Operation: r.Method + " " + r.URL.Path, Query: query})
			if err != nil {
				d.Logger.ErrorContext(r.Context(), "the audit log cannot be written", "error", err)
				refuse(w, http.StatusServiceUnavailable, "what is changed must be recorded, and cannot be at the moment")
				return
			}
		}
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next(seen, r)
		if d.Audit != nil {
			if err := d.Audit.Result(seq, audit.Record{Status: seen.status}); err != nil {
				d.Logger.ErrorContext(r.Context(), "the audit log cannot be written", "error", err)
			}
		}
		d.Logger.LogAttrs(r.Context(), slog.LevelInfo, "admin change", slog.String("who", who), slog.String("client.address", peer),
			slog.String("http.request.method", r.Method), slog.String("url.path", r.URL.Path),
			slog.String("url.query", query), slog.Int("http.response.status_code", seen.status))
	}
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
