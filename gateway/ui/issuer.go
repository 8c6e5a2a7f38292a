package ui

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

const (
	issuerPath   = loginPath + "/issuer"
	callbackPath = loginPath + "/callback"
	// loginTime is the maximum duration of a login at an issuer.
	loginTime = 10 * time.Minute
)

// underWay is the state of a pending login at an issuer. The browser stores it in a cookie, sealed by the console.
type underWay struct {
	Issuer string    `json:"issuer"`
	Proof  string    `json:"proof"`
	Next   string    `json:"next"`
	Began  time.Time `json:"began"`
}

// errNotBegun means that a login was not started at this console, or was started more than loginTime ago.
var errNotBegun error = adminapi.RefusedError{
	Status: http.StatusBadRequest,
	Reason: "the login was started in a different browser or has expired; log in again",
}

// seal returns the cookie value of a pending login.
func (c *Console) seal(ctx context.Context, login underWay) (string, error) {
	cipher, err := c.sessions.logins(ctx)
	if err != nil {
		return "", err
	}
	return sealed(cipher, login)
}

// unseal returns the pending login in the request's cookie. It returns errNotBegun if there is no such login or it has expired.
func (c *Console) unseal(r *http.Request) (login underWay, err error) {
	value, _ := c.cookie(r, loginCookie)
	if value == "" {
		return login, errNotBegun
	}
	cipher, err := c.sessions.logins(r.Context())
	if err == nil && (!unsealed(cipher, value, &login) || c.now().Sub(login.Began) >= loginTime) {
		err = errNotBegun
	}
	return login, err
}

// client returns the client of an issuer by name. It returns false if the issuer is not configured for login.
func (c *Console) client(issuer string) (identity.LoginClient, bool) {
	logins := c.people.logins()
	i := slices.IndexFunc(logins, func(l identity.Login) bool { return l.ID == issuer })
	if i < 0 {
		return identity.LoginClient{}, false
	}
	return logins[i].Client, true
}

// callback returns the redirect address for the issuer, as seen by the browser.
func (c *Console) callback(r *http.Request) string {
	scheme := "http"
	if c.people.encrypted(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host + c.path + callbackPath
}

// toIssuer redirects a browser to an issuer for login. It is requested by a link, because the Content-Security-Policy forbids forms that
// lead to other sites.
func (c *Console) toIssuer(w http.ResponseWriter, r *http.Request) {
	login := underWay{Issuer: r.FormValue("issuer"), Proof: identity.NewProof(), Next: c.local(r.FormValue("next")), Began: c.now()}
	client, known := c.client(login.Issuer)
	if !known {
		c.loginPage(w, r, http.StatusBadRequest, "this issuer is not configured for console logins")
		return
	}
	address, err := c.issuers.Begin(r.Context(), client, c.callback(r), login.Proof)
	if err != nil {
		c.refuseLogin(w, r, err)
		return
	}
	value, err := c.seal(r.Context(), login)
	if err != nil {
		c.refuseLogin(w, r, err)
		return
	}
	c.setCookie(w, r, loginCookie, value, int(loginTime.Seconds()))
	http.Redirect(w, r, address, http.StatusSeeOther) //nolint:gosec // the issuer is configured
}

// fromIssuer handles the redirect from an issuer and starts a session. A request that does not result in a session counts as a request with
// a wrong token. It is counted before the call to the issuer, so that the limit of the client address also bounds these calls.
func (c *Console) fromIssuer(w http.ResponseWriter, r *http.Request) {
	undo, wait := c.people.attempt(r)
	if wait > 0 {
		admin.SetRetryAfter(w, wait)
		c.loginPage(w, r, http.StatusTooManyRequests, "too many failed logins from this address")
		return
	}
	login, err := c.unseal(r)
	c.setCookie(w, r, loginCookie, "", -1)
	token, began := "", session{}
	if err == nil {
		token, err = c.finish(r, login)
	}
	if err == nil {
		began, err = c.people.enter(r, token, true)
	}
	if err != nil {
		c.refuseLogin(w, r, err)
		return
	}
	undo()
	c.begin(w, r, token, began, c.local(login.Next))
}

// errRefused means that the issuer rejected a login.
var errRefused error = adminapi.RefusedError{Status: http.StatusForbidden, Reason: "the issuer refused the login"}

// finish completes a login at the issuer and returns the ID token.
func (c *Console) finish(r *http.Request, login underWay) (token string, err error) {
	q := r.URL.Query()
	client, known := c.client(login.Issuer)
	switch {
	case !known || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(identity.LoginState(login.Proof))) != 1:
		return "", errNotBegun
	case q.Get("error") != "":
		return "", errRefused
	}
	return c.issuers.Finish(r.Context(), client, c.callback(r), login.Proof, q)
}

// refuseLogin shows why a login failed. The issuer's response is logged.
func (c *Console) refuseLogin(w http.ResponseWriter, r *http.Request, err error) {
	c.logger.WarnContext(r.Context(), "login at an issuer failed", "client.address", admin.PeerOf(r).String(), "reason", err.Error())
	if refused, ok := errors.AsType[admin.TokenError](err); ok {
		admin.SetRetryAfter(w, refused.Wait)
	}
	_, isRefused := errors.AsType[adminapi.RefusedError](err)
	status, reason := adminapi.StatusOf(err)
	switch {
	case isRefused || errors.Is(err, store.ErrUnavailable):
	case errors.Is(err, identity.ErrIssuerUnavailable):
		status, reason = http.StatusServiceUnavailable, "the issuer does not respond"
	default:
		status, reason = http.StatusForbidden, "the issuer returned an invalid response"
	}
	c.loginPage(w, r, status, reason)
}
