package ui

import (
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// Cookies of a console, by purpose.
const (
	sessionCookie = "session"
	// loginCookie holds the state of a pending login at an issuer.
	loginCookie = "login"
	// noticeCookie holds the notice of an action for the next page.
	noticeCookie = "notice"
	// nameCookie holds the name that an anonymous principal entered last.
	nameCookie = "name"
)

// cookieName returns the name and the path of a cookie. Over TLS the name begins with __Host- (RFC 6265bis, section 4.1.3.2), so that other
// hosts and pages without TLS cannot set the cookie. The path of such a cookie is always "/", so consoles on one host use different names.
func (c *Console) cookieName(r *http.Request, use string) (name, path string) {
	if c.people.encrypted(r) {
		return c.secureCookies + "_" + use, "/"
	}
	if use == loginCookie {
		return "tollgate_" + use, c.path + callbackPath
	}
	return "tollgate_" + use, c.cookies
}

// cookie returns the value of a cookie. ok is false if the request does not contain the cookie.
func (c *Console) cookie(r *http.Request, use string) (value string, ok bool) {
	name, _ := c.cookieName(r, use)
	cookie, err := r.Cookie(name)
	if err != nil {
		return "", false
	}
	return cookie.Value, true
}

// setCookie sets a cookie with a lifetime in seconds. A lifetime of -1 deletes the cookie.
func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, use, value string, seconds int) {
	name, path := c.cookieName(r, use)
	//nolint:gosec // without TLS it is served on loopback only
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: path, MaxAge: seconds, HttpOnly: true, Secure: c.people.encrypted(r), SameSite: http.SameSiteLaxMode,
	})
}

// sealed returns x as the value of a cookie, encrypted.
func sealed(seal cipher.AEAD, x any) (value string, err error) {
	text, err := json.Marshal(x)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(seal.Seal(nil, nil, text, nil)), nil //nolint:gosec // the cipher generates the nonce
}

// unsealed decodes the value of a cookie into x. It reports false if the value was not sealed with the same key.
func unsealed(seal cipher.AEAD, value string, x any) bool {
	text, err := base64.RawURLEncoding.DecodeString(value)
	if err == nil {
		text, err = seal.Open(nil, nil, text, nil)
	}
	return err == nil && json.Unmarshal(text, x) == nil
}
