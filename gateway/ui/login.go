package ui

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/cas"
)

// Paths are below that of the console.
const (
	loginPath  = "login"
	logoutPath = "logout"
	cookieName = "tollgate_session"
	// maxForm bounds the content of a form, in bytes.
	maxForm = 256 << 10
)

// loginData is the data of the login page: the page to go on to, the issuers where people log in, and what else they paste.
type loginData struct {
	Next   string
	Logins []admin.Login
	Asks   string
}

// showLogin serves the form for a token.
func (c *Console) showLogin(w http.ResponseWriter, r *http.Request) {
	c.loginPage(w, r, http.StatusOK, "")
}

func (c *Console) loginPage(w http.ResponseWriter, r *http.Request, status int, fault string) {
	v := &visit{Console: c, w: w, r: r}
	v.render(status, "login", frame{Title: "Log in", Fault: fault, Data: loginData{c.local(r.FormValue("next")), c.people.logins(), c.asks}})
}

// login begins a session for the holder of a token.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimSpace(r.PostFormValue("token"))
	s, err := c.people.enter(r, token, false)
	if refused, ok := errors.AsType[admin.TokenError](err); ok {
		if refused.Wait > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(admin.RetrySeconds(refused.Wait), 10))
		}
		c.loginPage(w, r, refused.Status, refused.Reason)
		return
	}
	next := c.local(r.FormValue("next"))
	if c.people.open() {
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // a page of the console, see local
		return
	}
	c.begin(w, r, token, s, next)
}

// begin begins a session, and shows a page.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, token string, of session, next string) {
	value, err := c.sessions.Begin(r.Context(), token, of)
	switch {
	case errors.Is(err, cas.ErrFull):
		c.loginPage(w, r, http.StatusServiceUnavailable, "too many people are logged in")
		return
	case err != nil:
		_, reason := admin.StatusOf(err)
		c.loginPage(w, r, http.StatusServiceUnavailable, reason)
		return
	}
	c.setCookie(w, r, value, int(sessionTime.Seconds()))
	c.deps.Logger.InfoContext(r.Context(), "console session began", "who", of.Name, "client.address", peer(r).String())
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // a page of the console, see local
}

// logout ends the session of a request, at every gateway.
func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		if err := c.sessions.End(context.WithoutCancel(r.Context()), cookie.Value); err != nil {
			_, reason := admin.StatusOf(err)
			(&visit{Console: c, w: w, r: r}).fail(http.StatusServiceUnavailable, reason+": the session goes on")
			return
		}
	}
	c.setCookie(w, r, "", -1)
	http.Redirect(w, r, c.path+loginPath, http.StatusSeeOther)
}

// setCookie sets the cookie of a session for some seconds; -1 deletes it.
func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	//nolint:gosec // without TLS it is served on loopback only
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: c.cookies, MaxAge: seconds, HttpOnly: true, Secure: c.people.encrypted(r), SameSite: http.SameSiteLaxMode,
	})
}

// local returns the address of a page of the console, the first one for any other address.
func (c *Console) local(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, c.path) || strings.ContainsAny(target, "\\\r\n") || strings.HasPrefix(u.Path, c.path+loginPath) {
		return c.path
	}
	return u.RequestURI()
}
