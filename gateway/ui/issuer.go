package ui

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
)

const (
	issuerPath   = loginPath + "/issuer"
	callbackPath = loginPath + "/callback"
	// loginCookie keeps a login that is under way, for loginTime.
	loginCookie = "tollgate_login"
	loginTime   = 10 * time.Minute
)

// underWay is the state that the browser keeps between the beginning of a login at an issuer and its end.
type underWay struct {
	Issuer string `json:"issuer"`
	Proof  string `json:"proof"`
	Next   string `json:"next"`
}

// client returns the client of an issuer by its name, and false if nobody logs in there.
func (c *Console) client(issuer string) (oidc.Client, bool) {
	logins := c.people.logins()
	i := slices.IndexFunc(logins, func(l admin.Login) bool { return l.ID == issuer })
	if i < 0 {
		return oidc.Client{}, false
	}
	return logins[i].Client, true
}

// callback returns the address that an issuer sends a browser back to: the one under which the browser sees the console.
func (c *Console) callback(r *http.Request) string {
	scheme := "http"
	if c.people.encrypted(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host + c.path + callbackPath
}

// toIssuer sends a browser to log in at an issuer. It follows a link: the policy of pages lets no form lead to another site.
func (c *Console) toIssuer(w http.ResponseWriter, r *http.Request) {
	login := underWay{Issuer: r.FormValue("issuer"), Proof: oidc.NewProof(), Next: c.local(r.FormValue("next"))}
	client, known := c.client(login.Issuer)
	if !known {
		c.loginPage(w, r, http.StatusBadRequest, "nobody logs in at this issuer")
		return
	}
	address, err := client.Begin(r.Context(), c.callback(r), login.Proof)
	if err != nil {
		c.refuseLogin(w, r, err)
		return
	}
	text, err := json.Marshal(login)
	if err != nil {
		c.refuseLogin(w, r, err)
		return
	}
	c.setLogin(w, r, base64.RawURLEncoding.EncodeToString(text), int(loginTime.Seconds()))
	http.Redirect(w, r, address, http.StatusSeeOther) //nolint:gosec // the issuer is configured
}

// fromIssuer begins a session for a person returning from an issuer.
func (c *Console) fromIssuer(w http.ResponseWriter, r *http.Request) {
	var login underWay
	cookie, err := r.Cookie(loginCookie)
	if err == nil {
		var text []byte
		if text, err = base64.RawURLEncoding.DecodeString(cookie.Value); err == nil {
			err = json.Unmarshal(text, &login)
		}
	}
	c.setLogin(w, r, "", -1)
	q := r.URL.Query()
	client, known := c.client(login.Issuer)
	switch {
	case err != nil || !known || q.Get("state") != oidc.State(login.Proof):
		c.loginPage(w, r, http.StatusBadRequest, "this login was not begun here, or too long ago")
		return
	case q.Get("error") != "":
		c.loginPage(w, r, http.StatusForbidden, "the issuer refused the login")
		return
	}
	token, err := client.Finish(r.Context(), c.callback(r), login.Proof, q.Get("code"))
	if err != nil {
		c.refuseLogin(w, r, err)
		return
	}
	s, err := c.people.enter(r, token, true)
	if err != nil {
		c.refuseLogin(w, r, err)
		return
	}
	c.begin(w, r, token, s, c.local(login.Next))
}

// refuseLogin shows why a login has failed. The issuer's answer is in the log.
func (c *Console) refuseLogin(w http.ResponseWriter, r *http.Request, err error) {
	c.deps.Logger.WarnContext(r.Context(), "login at an issuer failed", "client.address", peer(r).String(), "reason", err.Error())
	refused, isRefused := errors.AsType[admin.TokenError](err)
	switch {
	case isRefused:
		c.loginPage(w, r, refused.Status, refused.Reason)
	case errors.Is(err, oidc.ErrUnavailable):
		c.loginPage(w, r, http.StatusServiceUnavailable, "the issuer does not answer")
	default:
		c.loginPage(w, r, http.StatusForbidden, "the issuer's answer is not accepted")
	}
}

// setLogin sets the cookie of a login that is under way for some seconds; -1 deletes it.
func (c *Console) setLogin(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	//nolint:gosec // without TLS it is served on loopback only
	http.SetCookie(w, &http.Cookie{
		Name: loginCookie, Value: value, Path: c.path + callbackPath, MaxAge: seconds, HttpOnly: true, Secure: c.people.encrypted(r), SameSite: http.SameSiteLaxMode,
	})
}
