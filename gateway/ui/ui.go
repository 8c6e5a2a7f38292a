package ui

import (
	"bytes"
	"embed"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Path is the path of the first page. All others are below it.
const Path = "/ui/"

//go:embed assets
var assets embed.FS

// policy lets a page load the gateway's own files, and send forms to it. Nothing is inline.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	deps     admin.Deps
	sessions *Sessions
	rows     map[string]*row.Row // by pattern
	mux      *http.ServeMux
}

// New returns the console over the rows of the operators' listener.
func New(deps admin.Deps, sessions *Sessions) *Console {
	c := &Console{deps: deps, sessions: sessions, rows: make(map[string]*row.Row), mux: http.NewServeMux()}
	rows := deps.Rows()
	for i := range rows {
		c.rows[rows[i].Pattern] = &rows[i]
		if rows[i].Changes {
			c.mux.HandleFunc("POST "+actionPath(&rows[i]), c.visited(c.action(&rows[i])))
		}
	}
	c.mux.Handle("GET /ui", http.RedirectHandler(Path, http.StatusMovedPermanently))
	c.mux.HandleFunc("GET /ui/style.css", style)
	c.mux.HandleFunc("GET "+loginPath, c.showLogin)
	c.mux.HandleFunc("POST "+loginPath, c.login)
	c.mux.HandleFunc("POST "+logoutPath, c.logout)
	c.mux.HandleFunc("GET "+issuerPath, c.toIssuer)
	c.mux.HandleFunc("GET "+callbackPath, c.fromIssuer)
	c.mux.HandleFunc("GET /ui/spend.csv", c.visited(c.spendCSV))
	c.mux.HandleFunc("POST /ui/explain", c.visited(c.explain))
	for _, p := range pages() {
		c.mux.HandleFunc("GET "+p.pattern(), c.visited(func(v *visit) { c.show(v, p) }))
	}
	return c
}

// Before returns a handler that serves the console, and all other paths by next.
func (c *Console) Before(next http.Handler) http.Handler {
	guarded := http.NewCrossOriginProtection().Handler(http.HandlerFunc(c.serve))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ui" || strings.HasPrefix(r.URL.Path, Path) {
			guarded.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c *Console) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without one, browsers hide the origin of a form
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !private(r) {
		http.Error(w, "The console is served over TLS (admin.tls) and on loopback.", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	c.mux.ServeHTTP(w, r)
}

// private reports whether nobody on the way can read a request: it came over TLS or on loopback.
func private(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string })
	if !ok {
		return false
	}
	local, err := netip.ParseAddrPort(addr.String())
	return err == nil && local.Addr().Unmap().IsLoopback()
}

func style(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=300")
	http.ServeFileFS(w, r, assets, "assets/style.css")
}

// visit is one request of a known person.
type visit struct {
	*Console

	w     http.ResponseWriter
	r     *http.Request
	scope row.Scope
	// org is the organisation that the page is about.
	org string
}

// visited passes requests on whose asker is known, and sends others to log in.
func (c *Console) visited(next func(v *visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := c.asker(r)
		refused, isRefused := errors.AsType[admin.TokenError](err)
		v := &visit{Console: c, w: w, r: r, scope: s}
		switch {
		case errors.Is(err, errNoSession) || isRefused && refused.Status == http.StatusUnauthorized:
			target := loginPath
			if r.Method == http.MethodGet {
				target += "?" + url.Values{"next": {r.URL.RequestURI()}}.Encode()
			}
			http.Redirect(w, r, target, http.StatusSeeOther)
		case isRefused:
			v.fail(refused.Status, refused.Reason)
		case err != nil:
			v.fail(admin.StatusOf(err))
		default:
			v.choose()
			next(v)
		}
	}
}

// asker returns who sent a request: the holder of the session's token or, where no token is required, anyone.
func (c *Console) asker(r *http.Request) (row.Scope, error) {
	if c.deps.Admins().Open() {
		return c.deps.Identify(r, "")
	}
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return row.Scope{}, errNoSession
	}
	token, s, err := c.sessions.Token(r.Context(), cookie.Value)
	if err != nil {
		return row.Scope{}, err
	}
	at := c.deps.Now()
	if s.Login {
		at = s.Began
	}
	return c.deps.HolderAt(r.Context(), token, at)
}

// choose sets the organisation: the one that the request names, or the first.
func (v *visit) choose() {
	v.org = v.r.FormValue("org")
	if visible := v.scope.Visible(); v.org == "" && len(visible) > 0 {
		v.org = visible[0].ID
	}
}

// may reports whether the asker may ask a row.
func (v *visit) may(pattern string) bool {
	_, err := v.rows[pattern].Admit(v.scope, v.org)
	return err == nil
}

// render writes a page with a status. A template that fails is a fault of the program; the page stays empty then.
func (v *visit) render(status int, name string, f frame) {
	var page bytes.Buffer
	f.visit = v
	if err := templates()[name].ExecuteTemplate(&page, "layout", &f); err != nil {
		v.deps.Logger.ErrorContext(v.r.Context(), "a page of the console cannot be made", "error", err)
		http.Error(v.w, "The page cannot be made.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(page.Bytes()) // the asker left
}

// fail writes a page that says why there is no other.
func (v *visit) fail(status int, reason string) {
	v.render(status, "fault", frame{Title: http.StatusText(status), Fault: reason})
}

// peer returns the address of a request's connection.
func peer(r *http.Request) netip.Addr {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	return addr.Addr().Unmap()
}
