package admin

import (
	"net/http"
	"strings"
)

// Patterns lists the routes of the listener.
func Patterns(d Deps) []string {
	var out []string
	for _, r := range d.routes() {
		out = append(out, r.pattern)
	}
	return out
}

// Route is a route as tests see it.
type Route struct {
	Method, Path string
	Role         Role
	// Org is for those that an admin of an organisation may ask.
	Org, Changes bool
}

// Routes lists the routes of the listener, and returns it with another handler in place
// of their own.
func Routes(d Deps, h http.HandlerFunc) ([]Route, http.Handler) {
	routes := d.routes()
	out := make([]Route, len(routes))
	for i := range routes {
		r := &routes[i]
		method, path, _ := strings.Cut(r.pattern, " ")
		out[i] = Route{Method: method, Path: strings.Replace(path, "{id}", "x", 1), Role: r.role, Org: r.role == anyone || r.about != ofGateway, Changes: r.changes}
		r.handle = h
	}
	return out, d.handler(routes)
}
