package ui

import (
	"net/http"
	"slices"
	"strings"
)

// lookCookie stores the theme and the sidebar state of a browser.
const lookCookie = "look"

// lookTime is the lifetime of the cookie, in seconds.
const lookTime = 365 * 24 * 60 * 60

// themes lists the values of the theme, in the order of the switch.
//
//nolint:gochecknoglobals // a constant list
var themes = []string{"system", "dark", "light"}

// look holds the display preferences of a browser. The zero value selects the system's theme and a wide sidebar.
type look struct {
	// Theme is one of themes, or "" for the system's theme.
	Theme string
	// Narrow reports that the sidebar shows only icons.
	Narrow bool
}

// NextTheme returns the theme that the switch selects next.
func (l look) NextTheme() string {
	return themes[(max(0, slices.Index(themes, l.Theme))+1)%len(themes)]
}

// Look returns the display preferences of the browser.
func (v *visit) Look() (l look) {
	value, _ := v.cookie(v.r, lookCookie)
	theme, side, _ := strings.Cut(value, ".")
	if slices.Contains(themes[1:], theme) {
		l.Theme = theme
	}
	l.Narrow = side == "narrow"
	return l
}

// setLook stores the theme or the sidebar state that a form submits, and redirects to the page of the form.
func (c *Console) setLook(w http.ResponseWriter, r *http.Request) {
	v := &visit{Console: c, w: w, r: r}
	l := v.Look()
	if theme := r.PostFormValue("theme"); slices.Contains(themes, theme) {
		l.Theme = theme
	}
	if side := r.PostFormValue("sidebar"); side != "" {
		l.Narrow = side == "narrow"
	}
	side := "wide"
	if l.Narrow {
		side = "narrow"
	}
	c.setCookie(w, r, lookCookie, l.Theme+"."+side, lookTime)
	http.Redirect(w, r, c.local(r.PostFormValue("back")), http.StatusSeeOther) //nolint:gosec // a page of the console, see local
}
