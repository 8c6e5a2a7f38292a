package ui

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/record"
)

const (
	loginPath  = "/ui/login"
	logoutPath = "/ui/logout"
	cookieName = "tollgate_session"
	// maxForm bounds the content of a form, in bytes.
	maxForm = 256 << 10
)

// loginData is the data of the login page: the page to go on to, and the issuers where people log in.
type loginData struct {
	Next   string
	Logins []admin.Login
}

// showLogin serves the form for a token.
func (c *Console) showLogin(w http.ResponseWriter, r *http.Request) {
	c.loginPage(w, r, http.StatusOK, "")
}

func (c *Console) loginPage(w http.ResponseWriter, r *http.Request, status int, fault string) {
	v := &visit{Console: c, w: w, r: r}
	v.render(status, "login", frame{Title: "Log in", Fault: fault, Data: loginData{local(r.FormValue("next")), c.deps.Admins().Logins()}})
}

// login begins a session for the holder of a token.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimSpace(r.PostFormValue("token"))
	s, err := c.deps.Identify(r, "Bearer "+token)
	if refused, ok := errors.AsType[admin.TokenError](err); ok {
		if refused.Wait > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(admin.RetrySeconds(refused.Wait), 10))
		}
		c.loginPage(w, r, refused.Status, refused.Reason)
		return
	}
	next := local(r.FormValue("next"))
	if c.deps.Admins().Open() {
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // a page of the console, see local
		return
	}
	c.begin(w, r, token, session{Name: s.Name, Began: c.deps.Now().UTC()}, next)
}

// begin begins a session, and shows a page.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, token string, of session, next string) {
	value, err := c.sessions.Begin(r.Context(), token, of)
	switch {
	case errors.Is(err, record.ErrFull):
		c.loginPage(w, r, http.StatusServiceUnavailable, "too many people are logged in")
		return
	case err != nil:
		_, reason := admin.StatusOf(err)
		c.loginPage(w, r, http.StatusServiceUnavailable, reason)
		return
	}
	setCookie(w, r, value, int(sessionTime.Seconds()))
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
	setCookie(w, r, "", -1)
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// setCookie sets the cookie of a session for some seconds; -1 deletes it.
func setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	//nolint:gosec // without TLS it is served on loopback only
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/ui", MaxAge: seconds, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
}

// local returns the address of a page of the console, the first one for any other address.
func local(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, Path) || strings.ContainsAny(target, "\\\r\n") || strings.HasPrefix(u.Path, loginPath) {
		return Path
	}
	return u.RequestURI()
}
