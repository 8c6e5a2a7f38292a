package ui

import (
	"net/http"
	"slices"
	"strings"
)

// lookCookie keeps the theme and the sidebar of a browser.
const lookCookie = "look"

// lookTime is how long a browser keeps its look, in seconds.
const lookTime = 365 * 24 * 60 * 60

// themes are the values of the theme, in the order in which the switch goes through them.
//
//nolint:gochecknoglobals // a constant list
var themes = []string{"system", "dark", "light"}

// look is how a browser shows the console. The zero value is the system's theme and a wide sidebar.
type look struct {
	// Theme is one of themes, "" for that of the system.
	Theme string
	// Narrow says that the sidebar has icons alone.
	Narrow bool
}

// NextTheme returns the theme that the switch leads to.
func (l look) NextTheme() string {
	return themes[(max(0, slices.Index(themes, l.Theme))+1)%len(themes)]
}

// Look returns the look of the browser.
func (v *visit) Look() (l look) {
	value, _ := v.cookie(v.r, lookCookie)
	theme, side, _ := strings.Cut(value, ".")
	if slices.Contains(themes[1:], theme) {
		l.Theme = theme
	}
	l.Narrow = side == "narrow"
	return l
}

// setLook keeps the theme or the sidebar of a form, and shows the page that the form was on.
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
