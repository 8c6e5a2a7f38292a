package ui

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// operators authenticates the holders of operator tokens.
type operators struct{ *admin.Guard }

func (operators) private(r *http.Request) string {
	if r.TLS != nil || onLoopback(r) {
		return ""
	}
	return "The console is served only over TLS (admin.tls) or on a loopback address."
}

func (operators) encrypted(r *http.Request) bool { return r.TLS != nil }

func (o operators) open() bool { return o.Admins().IsOpen() }

func (o operators) logins() []identity.Login { return o.Admins().Logins() }

func (o operators) enter(r *http.Request, token string, login bool) (session, error) {
	var s adminapi.Principal
	var err error
	if login {
		s, err = o.Authenticate(r.Context(), token)
	} else {
		s, err = o.AuthenticateRequest(r, "Bearer "+token)
	}
	return session{Name: s.Name, Began: o.Now().UTC(), Org: s.Org, Holder: s.Name, Login: login}, err
}

func (o operators) attempt(r *http.Request) (undo func(), wait time.Duration) {
	if _, wait = o.Attempts.Take(admin.PeerOf(r)); wait > 0 {
		return nil, wait
	}
	return func() { o.Attempts.Return(admin.PeerOf(r)) }, 0
}

func (o operators) asker(r *http.Request, token string, s *session) (adminapi.Principal, error) {
	if o.open() {
		return o.AuthenticateRequest(r, "")
	}
	at := o.Now()
	if s.Login {
		at = s.Began
	}
	holder, err := o.AuthenticateAt(r.Context(), token, at)
	holder.Peer = admin.PeerOf(r)
	return holder, err
}

// onLoopback reports whether a request arrived over the loopback interface.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string })
	if !ok {
		return false
	}
	local, err := netip.ParseAddrPort(addr.String())
	return err == nil && local.Addr().Unmap().IsLoopback()
}
