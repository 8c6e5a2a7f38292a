package ui

import "net/http"

// The cookies of a console, by what they are for.
const (
	sessionCookie = "session"
	// loginCookie has a login that is under way at an issuer.
	loginCookie = "login"
	// noticeCookie has the notice of an action for the next page.
	noticeCookie = "notice"
)

// cookieName returns the name and the path of a cookie. Over TLS the name begins with __Host- (RFC 6265bis, section 4.1.3.2): no other host,
// and no page without TLS, can set such a cookie. Its path is that of all pages then, so the consoles of one host have different names.
func (c *Console) cookieName(r *http.Request, use string) (name, path string) {
	if c.people.encrypted(r) {
		return c.secureCookies + "_" + use, "/"
	}
	if use == loginCookie {
		return "tollgate_" + use, c.path + callbackPath
	}
	return "tollgate_" + use, c.cookies
}

// cookie returns the value of a cookie, and false if the request has no such cookie.
func (c *Console) cookie(r *http.Request, use string) (value string, ok bool) {
	name, _ := c.cookieName(r, use)
	cookie, err := r.Cookie(name)
	if err != nil {
		return "", false
	}
	return cookie.Value, true
}

// setCookie sets a cookie for some seconds; -1 deletes it.
func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, use, value string, seconds int) {
	name, path := c.cookieName(r, use)
	//nolint:gosec // without TLS it is served on loopback only
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: path, MaxAge: seconds, HttpOnly: true, Secure: c.people.encrypted(r), SameSite: http.SameSiteLaxMode,
	})
}
