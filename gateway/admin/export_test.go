package admin

import (
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Patterns lists the routes of the listener.
func Patterns(d Deps) []string {
	var out []string
	for _, r := range d.Rows() {
		out = append(out, r.Pattern)
	}
	return out
}

// Route is a row as tests see it.
type Route struct {
	Method, Path string
	Role         row.Role
	// Org is for those that an admin of an organisation may ask.
	Org, Changes bool
}

// Routes lists the rows of the listener, and returns it with another handler in place
// of their own.
func Routes(d Deps, h http.HandlerFunc) ([]Route, http.Handler) {
	rows := d.Rows()
	out := make([]Route, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = Route{Method: r.Method(), Path: strings.Replace(r.Path(), "{id}", "x", 1), Role: r.Role, Org: r.Role == row.Anyone || r.About != row.OfGateway, Changes: r.Changes}
		r.Handle = h
	}
	return out, d.handler(rows)
}
