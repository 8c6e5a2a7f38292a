package ui

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// Paths of the login, relative to the console.
const (
	loginPath  = "login"
	logoutPath = "logout"
	// maxForm is the maximum size of a form, in bytes.
	maxForm = 256 << 10
)

// loginData holds the data of the login page: the address to show after login, the issuers, and the name of the credential to paste.
type loginData struct {
	Next   string
	Logins []identity.Login
	Asks   string
}

// showLogin serves the login form.
func (c *Console) showLogin(w http.ResponseWriter, r *http.Request) {
	c.loginPage(w, r, http.StatusOK, "")
}

func (c *Console) loginPage(w http.ResponseWriter, r *http.Request, status int, fault string) {
	v := &visit{Console: c, w: w, r: r}
	v.render(status, "login", frame{Title: "Sign in", Fault: fault, Data: loginData{c.local(r.FormValue("next")), c.people.logins(), c.asks}})
}

// login starts a session for the holder of the submitted token.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimSpace(r.PostFormValue("token"))
	s, err := c.people.enter(r, token, false)
	if err != nil {
		refused, isRefused := errors.AsType[admin.TokenError](err)
		if !isRefused {
			c.logger.ErrorContext(r.Context(), "console login failed", "client.address", admin.PeerOf(r).String(), "error", err)
		}
		admin.SetRetryAfter(w, refused.Wait)
		status, reason := adminapi.StatusOf(err)
		c.loginPage(w, r, status, upper(reason))
		return
	}
	next := c.local(r.FormValue("next"))
	if c.people.open() {
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // a page of the console, see local
		return
	}
	c.begin(w, r, token, s, next)
}

// begin starts a session and redirects to next. It ends the previous session of the browser.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, token string, of session, next string) {
	err := c.endSession(r)
	value := ""
	if err == nil {
		value, err = c.sessions.Begin(r.Context(), token, of)
	}
	if err != nil {
		_, reason := adminapi.StatusOf(err)
		c.loginPage(w, r, http.StatusServiceUnavailable, reason)
		return
	}
	c.setCookie(w, r, sessionCookie, value, int(sessionTime.Seconds()))
	c.logger.InfoContext(r.Context(), "console session began", "who", of.Name, "client.address", admin.PeerOf(r).String())
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // a page of the console, see local
}

// endSession ends the session of a request, if any, on every gateway.
func (c *Console) endSession(r *http.Request) error {
	value, ok := c.cookie(r, sessionCookie)
	if !ok {
		return nil
	}
	return c.sessions.End(context.WithoutCancel(r.Context()), value)
}

// logout ends the session of a request on every gateway.
func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	if err := c.endSession(r); err != nil {
		_, reason := adminapi.StatusOf(err)
		(&visit{Console: c, w: w, r: r}).fail(http.StatusServiceUnavailable, reason+"; the session remains open")
		return
	}
	c.setCookie(w, r, sessionCookie, "", -1)
	http.Redirect(w, r, c.path+loginPath, http.StatusSeeOther)
}

// local returns target if it is the address of a console page other than the login page, and otherwise the address of the first page. The
// result has a decoded and cleaned path, because browsers clean a path before they follow a redirect.
func (c *Console) local(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(target+u.Path, "\\") ||
		strings.ContainsFunc(u.Path, unicode.IsControl) {
		return c.path
	}
	page := url.URL{Path: path.Clean(u.Path), RawQuery: u.RawQuery}
	if !strings.HasPrefix(page.Path, c.path) || strings.HasPrefix(page.Path, c.path+loginPath) {
		return c.path
	}
	return page.RequestURI()
}
