package admin

import (
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Route is a row as tests see it.
type Route struct {
	Method, Path string
	Role         adminapi.Role
	// Org is for those that an admin of an organisation may ask.
	Org, Changes bool
}

// Routes lists rows, and returns a listener of them with another handler in place of their own.
func Routes(g *Guard, rows []adminapi.Endpoint, h http.HandlerFunc) ([]Route, http.Handler) {
	out := make([]Route, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = Route{Method: r.Method(), Path: strings.Replace(r.Path(), "{id}", "x", 1), Role: r.Role, Org: r.Role == adminapi.Anyone || r.Subject != adminapi.SubjectGateway, Changes: r.Mutates}
		r.HTTPHandler = h
	}
	return out, New(g, rows)
}
