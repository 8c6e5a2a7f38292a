package platform

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// route is one operation.
type route struct {
	method    string
	pattern   string
	operation string
	handle    handler
	query     []string // parameters it knows; those that may be repeated end in the constant repeated
	body      bool     // takes a body
	changes   bool     // needs a key that may change things
	open      bool     // needs no key
	unknown   int      // status of a body with unknown members; zero is 422
}

// getRoute is an operation that changes nothing.
func getRoute(pattern, operation string, handle handler, query ...string) route {
	return route{method: http.MethodGet, pattern: pattern, operation: operation, handle: handle, query: query}
}

// changeRoute is an operation that takes a body and changes things.
func changeRoute(method, pattern, operation string, handle handler, query ...string) route {
	return route{method: method, pattern: pattern, operation: operation, handle: handle, query: query, body: true, changes: true}
}

// deleteRoute is an operation that takes no body and changes things.
func deleteRoute(pattern, operation string, handle handler) route {
	return route{method: http.MethodDelete, pattern: pattern, operation: operation, handle: handle, changes: true}
}

// repeated ends the name of a query parameter that may be given more than once.
const repeated = "..."

// surface is one set of routes with its own manners: the REST API or the run
// interface.
type surface struct {
	routes   *routeTable
	limit    func(*route) int64                        // body size; the route is nil when none matched
	problem  func(*problem) (body object, kind string) // formats a refusal
	counts   bool                                      // counts against the account's windows
	bareKeys bool                                      // takes a key without its scheme
	freeForm bool                                      // bodies need not be JSON
}

// restRoutes is every operation of the REST API. Where two patterns could match
// one path, the literal one stands first.
func restRoutes() []route {
	return slices.Concat(
		[]route{{method: http.MethodGet, pattern: "/v2/openapi.json", operation: "getOpenAPI", handle: (*exchange).getOpenAPI, open: true}},
		accountRoutes(), secrets().routes(), podRoutes(), clusterRoutes(), endpointRoutes(), sandboxRoutes(), templates().routes(), volumes().routes(),
		registryRoutes(), catalogRoutes(), billRoutes(),
	)
}

// routeTable finds routes segment by segment.
type routeTable struct {
	byLength map[int][]*pattern // patterns by number of segments, in list order
	all      *route             // takes every method and path; nil otherwise
}

// pattern is one path with its methods.
type pattern struct {
	segments []string // "" stands for a parameter
	methods  []*route
	allow    string
}

func newRouteTable(routes []route) *routeTable {
	t := &routeTable{byLength: map[int][]*pattern{}}
	known := map[string]*pattern{}
	for i := range routes {
		r := &routes[i]
		p := known[r.pattern]
		if p == nil {
			p = &pattern{segments: strings.Split(r.pattern[1:], "/")}
			for i, s := range p.segments {
				if strings.HasPrefix(s, "{") {
					p.segments[i] = ""
				}
			}
			known[r.pattern] = p
			t.byLength[len(p.segments)] = append(t.byLength[len(p.segments)], p)
		}
		p.methods = append(p.methods, r)
	}
	for _, p := range known {
		var methods []string
		for _, r := range p.methods {
			methods = append(methods, r.method)
		}
		slices.Sort(methods)
		p.allow = strings.Join(methods, ", ")
	}
	return t
}

// matched is what a path and method stand for: a route with the values of its
// parameters, or else the methods the path does have.
type matched struct {
	route  *route
	params []string
	allow  string
}

// match finds the operation of a request by its escaped path: segments are
// compared exactly and parameters unescaped one by one, so that an escaped
// slash cannot make one segment into two.
func (t *routeTable) match(r *http.Request) (matched, error) {
	if t.all != nil {
		return matched{route: t.all}, nil
	}
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for _, p := range t.byLength[len(segments)] {
		params, fits, err := p.fit(segments)
		if err != nil {
			return matched{}, badRequest(unreadable, "path: not a valid escape")
		}
		if !fits {
			continue
		}
		for _, route := range p.methods {
			if route.method == r.Method {
				return matched{route: route, params: params}, nil
			}
		}
		return matched{allow: p.allow}, nil
	}
	return matched{}, nil
}

func (p *pattern) fit(segments []string) (params []string, fits bool, err error) {
	for i, want := range p.segments {
		switch {
		case want != "" && want != segments[i], want == "" && segments[i] == "":
			return nil, false, nil
		case want == "":
			value, err := url.PathUnescape(segments[i])
			if err != nil {
				return nil, false, err
			}
			params = append(params, value)
		}
	}
	return params, true, nil
}
