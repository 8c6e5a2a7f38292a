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

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
)

// Attempts bounds failed attempts by address, as ratelimit.AddressLimiter does.
type Attempts interface {
	// Take takes one attempt. It reports whether the address had one left and, if
	// not, when it will; a refusal takes nothing.
	Take(addr netip.Addr) (ok bool, retryAfter time.Duration)
}

// guarded admits those who have the role of a route, and its organisation if they are
// bound to one.
func (d Deps) guarded(rt *route, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := d.authenticate(w, r)
		if a == nil {
			return
		}
		reason := ""
		switch {
		case !a.has(rt.role):
			reason = "the role " + string(rt.role) + " is required"
		case !a.within(rt.about, r):
			reason = "the token is bound to organisation " + a.Org
		}
		if reason != "" {
			d.Logger.WarnContext(r.Context(), "admin refused", "who", a.Name, "peer", peerOf(r).String(), "method", r.Method, "path", r.URL.Path, "reason", reason)
			write(w, http.StatusForbidden, problem{reason})
			return
		}
		next(w, a.attach(r))
	}
}

// within reports whether a request is about what the admin is bound to. Where an
// organisation can be named and none is, it becomes the admin's.
func (a *Admin) within(about subject, r *http.Request) bool {
	if a.Org == "" || about == ofAsking {
		return true
	}
	q := r.URL.Query()
	if org := q.Get("org"); about != ofOrg || org != "" && org != a.Org {
		return false
	}
	q.Set("org", a.Org)
	r.URL.RawQuery = q.Encode()
	return true
}

// authenticate returns who asks. Without any admin it asks for a host that no page
// elsewhere can have: a name can be pointed to this address behind a browser's back,
// which then takes that page for ours (DNS rebinding). It answers what it refuses, and
// returns nil.
//
// Guessing is slow: an address with too many wrong tokens gets 429 for each further one.
// The right one passes whatever its address sent before, so that a key can
// always be revoked.
func (d Deps) authenticate(w http.ResponseWriter, r *http.Request) *Admin {
	admins := d.Admins()
	if admins.Open() {
		if !fixedHost(r.Host) {
			write(w, http.StatusMisdirectedRequest, problem{"without an admin token, ask by address or as localhost"})
			return nil
		}
		return openAdmin()
	}
	peer := peerOf(r)
	given := r.Header.Get("Authorization")
	err := errUnknown
	if token, ok := strings.CutPrefix(given, "Bearer "); ok {
		var a *Admin
		if a, err = admins.Find(r.Context(), token, d.Now()); err == nil {
			return a
		}
	}
	unjudged, nobody := errors.Is(err, oidc.ErrUnavailable), errors.Is(err, errNoRole) || errors.Is(err, errNoName)
	if given != "" {
		if !unjudged && !nobody {
			if ok, wait := d.Attempts.Take(peer); !ok {
				d.slow(w, wait)
				return nil
			}
		}
		d.Logger.WarnContext(r.Context(), "wrong admin token", "peer", peer.String(), "method", r.Method, "path", r.URL.Path, "reason", err.Error())
	}
	switch {
	case unjudged:
		w.Header().Set("Retry-After", "5")
		write(w, http.StatusServiceUnavailable, problem{oidc.ErrUnavailable.Error()})
	case nobody:
		write(w, http.StatusForbidden, problem{err.Error()})
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		write(w, http.StatusUnauthorized, problem{errUnknown.Error()})
	}
	return nil
}

func (d Deps) slow(w http.ResponseWriter, wait time.Duration) {
	seconds := max(1, int64((wait+time.Second-1)/time.Second))
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	write(w, http.StatusTooManyRequests, problem{"too many wrong admin tokens came from this address"})
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
				write(w, http.StatusServiceUnavailable, problem{"what is changed must be recorded, and cannot be at the moment"})
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
		d.Logger.LogAttrs(r.Context(), slog.LevelInfo, "admin change", slog.String("who", who), slog.String("peer", peer),
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("query", query), slog.Int("status", seen.status))
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
