package ui

import (
	"crypto/rand"
	"embed"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// Path is the path of the first page. The paths of all other pages begin with Path.
const Path = "/ui/"

// faviconPath is the path that browsers request automatically, without credentials.
const faviconPath = "/favicon.ico"

//go:embed assets
var assets embed.FS

// policy is the Content-Security-Policy. A page may only load files from the gateway and submit forms to it. Inline scripts and styles are
// forbidden.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// Console serves the pages of one listener. It is safe for concurrent use.
type Console struct {
	// path is the path of the first page. cookies is the path of cookies set without TLS. secureCookies is the name prefix of cookies set
	// over TLS.
	path, cookies, secureCookies string
	// asks names the credential that users paste to log in.
	asks string
	// pages lists the pages in the order of the navigation.
	pages  []*page
	people people
	now    func() time.Time
	// hourlyDays is the retention of hourly costs, in days.
	hourlyDays int
	logger     *slog.Logger
	sessions   *Sessions
	issuers    *identity.Logins
	// rows are the endpoints of the admin listener. unrecorded are the same endpoints without records in the audit log.
	rows, unrecorded *adminapi.Table
	// problems caches the badges of the navigation by organisation.
	problems sync.Map
	// secret seals notices on a listener without login.
	secret string
	mux    *http.ServeMux
}

// people authenticates the users of a console.
type people interface {
	// private returns the reason to reject a request that others could read in transit, or "" if the connection is safe.
	private(r *http.Request) string
	// encrypted reports whether the browser uses TLS for a request.
	encrypted(r *http.Request) bool
	// open reports whether the console works without login.
	open() bool
	// logins returns the issuers for login.
	logins() []identity.Login
	// attempt counts a request as an attempt with a wrong token. undo removes the request from the count again. If the client address has no
	// attempts left, undo is nil and wait is the time until the next attempt is possible.
	attempt(r *http.Request) (undo func(), wait time.Duration)
	// enter returns a session for the holder of a token. login reports whether the token results from a login at its issuer.
	enter(r *http.Request, token string, login bool) (session, error)
	// asker returns the holder of a session's token, or the anonymous principal if the console works without login.
	asker(r *http.Request, token string, s *session) (adminapi.Principal, error)
}

// New returns the console for the endpoints of the admin listener. hourlyDays is the retention of hourly costs, in days.
func New(guard *admin.Guard, rows []adminapi.Endpoint, sessions *Sessions, hourlyDays int) *Console {
	c := &Console{
		path: Path, cookies: "/ui", secureCookies: "__Host-tollgate", asks: "the token of an admin", pages: pages(), people: operators{guard},
		now: guard.Now, hourlyDays: hourlyDays, logger: guard.Logger, sessions: sessions, rows: adminapi.NewTable(rows, guard),
		unrecorded: adminapi.NewTable(rows, adminapi.Direct{}),
	}
	c.serveCommon()
	for i := range rows {
		if rows[i].Mutates {
			c.mux.HandleFunc("POST "+Path+actionName(&rows[i]), c.visited(c.action(&rows[i])))
		}
	}
	c.mux.HandleFunc("GET /ui/cost.csv", c.visited((*visit).costCSV))
	c.mux.HandleFunc("GET /ui/focus.csv", c.visited((*visit).focusCSV))
	c.mux.HandleFunc("GET "+livePath, c.visited((*visit).live))
	c.mux.HandleFunc("POST /ui/dry-run", c.visited((*visit).explain))
	c.mux.HandleFunc("POST /ui/playground", c.visited((*visit).playground))
	return c
}

// serveCommon registers the routes that all consoles share: pages, static files and login.
func (c *Console) serveCommon() {
	c.mux, c.secret, c.issuers = http.NewServeMux(), rand.Text()+rand.Text(), identity.NewLogins(c.now)
	c.mux.Handle("GET "+strings.TrimSuffix(c.path, "/"), http.RedirectHandler(c.path, http.StatusMovedPermanently))
	for name := range statics() {
		c.mux.Handle("GET "+c.path+name, wire.Compress(file(name)))
	}
	c.mux.HandleFunc("POST "+c.path+lookCookie, c.setLook)
	c.mux.HandleFunc("GET "+faviconPath, file("icon.svg"))
	c.mux.HandleFunc("GET "+c.path+loginPath, c.showLogin)
	c.mux.HandleFunc("POST "+c.path+loginPath, c.login)
	c.mux.HandleFunc("POST "+c.path+logoutPath, c.logout)
	c.mux.HandleFunc("GET "+c.path+issuerPath, c.toIssuer)
	c.mux.HandleFunc("GET "+c.path+callbackPath, c.fromIssuer)
	c.mux.HandleFunc("GET "+c.path, c.visited((*visit).noPage))
	for _, p := range c.pages {
		c.mux.Handle("GET "+c.path+p.below(), wire.Compress(c.visited(func(v *visit) error { return v.show(p) })))
	}
}

// noPage responds to a request for an address without a page. If the address without its trailing slash has a page, noPage redirects to it.
func (v *visit) noPage() error {
	at, slash := strings.CutSuffix(strings.TrimPrefix(v.r.URL.Path, v.path), "/")
	if slash && slices.ContainsFunc(v.pages, func(p *page) bool { return at != "" && p.serves(at) }) {
		http.Redirect(v.w, v.r, address(strings.TrimSuffix(v.r.URL.EscapedPath(), "/"), v.r.URL.Query(), nil), http.StatusMovedPermanently)
		return nil
	}
	v.readBadges()
	v.render(http.StatusNotFound, "fault", frame{Title: "Page not found", Fault: "No page has this address. It may be misspelt, or the page may have moved"})
	return nil
}

// Before returns a handler that serves the console and passes requests for other paths to next.
func (c *Console) Before(next http.Handler) http.Handler {
	guarded := http.NewCrossOriginProtection().Handler(http.HandlerFunc(c.serve))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.Serves(r) {
			guarded.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Serves reports whether the path of a request belongs to the console.
func (c *Console) Serves(r *http.Request) bool {
	return r.URL.Path+"/" == c.path || strings.HasPrefix(r.URL.Path, c.path) || r.URL.Path == faviconPath
}

func (c *Console) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without this header, browsers hide the origin of a form
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if reason := c.people.private(r); reason != "" {
		http.Error(w, reason, http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	c.mux.ServeHTTP(w, r)
}

// visit is a request of an authenticated user.
type visit struct {
	*Console

	w     http.ResponseWriter
	r     *http.Request
	scope adminapi.Principal
	// org is the organisation of the page.
	org string
	// token is the token of the session. It is empty if the console works without login.
	token   string
	session session
	// page is the current page, or nil, with its time range and navigation badges.
	page   *page
	period period
	badges badges
	// action, typed and failure are the action, the submitted fields and the error of a form whose submission failed. Otherwise they are zero.
	action, failure string
	typed           url.Values
	// patient is the request without the deadline of the page. It is nil if the request is not for a page.
	patient *http.Request
}

// visited calls next for requests of authenticated users. It responds to other requests, and to errors of next; see refuse.
func (c *Console) visited(next func(v *visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{Console: c, w: w, r: r}
		err := v.identify()
		if err == nil {
			err = v.choose()
		}
		if err == nil {
			err = next(v)
		}
		if err != nil {
			v.refuse(err)
		}
	}
}

// refuse redirects a request without a valid session to the login page, and responds to all other failures with an error page.
func (v *visit) refuse(err error) {
	status, reason := adminapi.StatusOf(err)
	if status == http.StatusUnauthorized {
		v.toLogin()
		return
	}
	v.fail(status, reason)
}

// toLogin redirects a browser to the login page, which then leads back to the requested page.
func (v *visit) toLogin() {
	target := v.path + loginPath
	if v.r.Method == http.MethodGet {
		target += "?" + url.Values{"next": {v.r.URL.RequestURI()}}.Encode()
	}
	http.Redirect(v.w, v.r, target, http.StatusSeeOther)
}

// identify sets the principal of a request: the holder of the session's token or, if the console works without login, the anonymous
// principal.
func (v *visit) identify() (err error) {
	if !v.people.open() {
		value, ok := v.cookie(v.r, sessionCookie)
		if !ok {
			return errNoSession
		}
		if v.token, v.session, err = v.sessions.Token(v.r.Context(), value); err != nil {
			return err
		}
	}
	v.scope, err = v.people.asker(v.r, v.token, &v.session)
	return err
}

// choose sets the organisation to the one in the request, or to the first visible one. It returns an error if the requested organisation is
// not configured.
func (v *visit) choose() error {
	if v.rows == nil {
		return nil // callers see their own organisation only
	}
	v.org = v.r.FormValue("org")
	if reason := v.scope.OrgProblem(v.org); v.org != "" && v.scope.Org == "" && reason != "" {
		v.org = ""
		return adminapi.RefusedError{Status: http.StatusNotFound, Reason: reason}
	}
	if visible := v.scope.Visible(); v.org == "" && len(visible) > 0 {
		v.org = visible[0].ID
	}
	return nil
}

// may reports whether the principal may call an endpoint, which must exist.
func (v *visit) may(pattern string) bool {
	_, err := v.rows.Endpoint(pattern).Admit(v.scope, v.org)
	return err == nil
}
