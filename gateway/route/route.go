package route

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Dialect is the name of an API that callers use.
type Dialect string

// The dialects.
const (
	V2      Dialect = "v2"
	V1      Dialect = "v1"
	GraphQL Dialect = "graphql"
	// Run is the run interface. Chat is the OpenAI-compatible part of the run interface, which has another form of errors.
	Run  Dialect = "run"
	Chat Dialect = "chat"
)

// IsRun reports whether the dialect belongs to the run interface.
func (d Dialect) IsRun() bool { return d == Run || d == Chat }

// Route maps a method and a path pattern to an operation.
type Route struct {
	// ID is the name of the operation within its dialect.
	ID      string
	Dialect Dialect
	// Method is an HTTP method or [AnyMethod].
	Method string
	// Pattern is the path with parameters in the form {name}, such as "/v2/pods/{id}". A parameter matches one whole segment. A parameter
	// {name...} at the end matches the rest of the path as sent. The rest may contain escapes, but no dot segments.
	Pattern string
	// Public is true if callers need no credential.
	Public bool
	// IgnoresBody is true if the body is read but not decoded.
	IgnoresBody bool
}

// AnyMethod is a [Route.Method] that matches GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS.
const AnyMethod = "*"

// Match is the route that [Table.Match] has found for a request.
type Match struct {
	Route *Route
	// Params contains the decoded path parameters. It is nil if the path has no parameters.
	Params map[string]string
}

// ErrNotFound is returned if the path matches no route.
var ErrNotFound = errors.New("route: no operation has this path")

// Suggest returns the path that a caller probably meant by a path that matches no route: the path with the prefix /v2 or /v1, or without a
// trailing slash. It returns "" if neither matches a route.
func (t *Table) Suggest(method, path string) string {
	trimmed := strings.TrimRight(path, "/")
	for _, candidate := range []string{trimmed, "/v2" + trimmed, "/v1" + trimmed} {
		_, err := t.Match(method, candidate)
		if _, otherMethod := errors.AsType[*MethodError](err); err == nil || otherMethod {
			return candidate
		}
	}
	return ""
}

// MethodError is returned if the path matches a route, but no route with the requested method.
type MethodError struct {
	// Allow lists the allowed methods, sorted.
	Allow []string
}

// Error implements error.
func (e *MethodError) Error() string {
	return "route: the path supports only " + strings.Join(e.Allow, ", ")
}

// PathError is returned if parsers could interpret a path or query in different ways.
type PathError struct {
	// Reason is the message for the caller. It does not repeat the path.
	Reason string
}

// Error implements error.
func (e *PathError) Error() string { return "route: " + e.Reason }

// Table finds the route of a request. It is immutable and safe for concurrent use.
type Table struct {
	root *node
}

type node struct {
	static map[string]*node
	// param is the child for a {name} segment.
	param   *node
	name    string // of the parameter matched by this node
	rest    *node  // the child for a final {name...}
	methods map[string]*Route
	// dialect is the dialect of the first route that ends at this node or at a descendant.
	dialect Dialect
}

// NewTable returns a Table with the given routes. If two routes have the same method and path, or different names for the same parameter,
// NewTable returns an error that names both routes.
func NewTable(routes []Route) (*Table, error) {
	t := &Table{root: new(node)}
	var errs []error
	for i := range routes {
		if err := t.add(&routes[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return t, errors.Join(errs...)
}

func (t *Table) add(r *Route) error {
	if !strings.HasPrefix(r.Pattern, "/") {
		return fmt.Errorf("route %s: pattern %q does not begin with a slash", r.ID, r.Pattern)
	}
	n := t.root
	for seg := range strings.SplitSeq(r.Pattern[1:], "/") {
		if seg == "" {
			return fmt.Errorf("route %s: pattern %q has an empty segment", r.ID, r.Pattern)
		}
		next, err := n.child(seg)
		if err != nil {
			return fmt.Errorf("route %s: pattern %q: %w", r.ID, r.Pattern, err)
		}
		n = next
		n.dialect = cmp.Or(n.dialect, r.Dialect)
	}
	if first, ok := n.methods[r.Method]; ok {
		return fmt.Errorf("routes %s and %s are both registered for %s %s", first.ID, r.ID, r.Method, r.Pattern)
	}
	if n.methods == nil {
		n.methods = make(map[string]*Route)
	}
	n.methods[r.Method] = r
	return nil
}

func (n *node) child(seg string) (*node, error) {
	if name, ok := strings.CutSuffix(seg, "...}"); ok {
		if n.rest == nil {
			n.rest = &node{name: name[1:]}
		}
		return n.rest, nil
	}
	if name, ok := strings.CutPrefix(seg, "{"); ok {
		name = strings.TrimSuffix(name, "}")
		if n.param == nil {
			n.param = &node{name: name}
		}
		if n.param.name != name {
			return nil, fmt.Errorf("parameter {%s} is named {%s} in another route", name, n.param.name)
		}
		return n.param, nil
	}
	if n.static == nil {
		n.static = make(map[string]*node)
	}
	if n.static[seg] == nil {
		n.static[seg] = new(node)
	}
	return n.static[seg], nil
}

// Dialect returns the dialect in which an error about a path is reported. The path need not match a route: the result is the dialect of the
// last literal segment that the path has in common with a route, or V2 if they have no segment in common.
func (t *Table) Dialect(path string) Dialect {
	d, _ := t.walk(path)
	return d
}

// walk follows a path as far as it has segments in common with a route. It returns the result of Dialect, and the start index of the part
// matched by {name...}, or the length of the path.
func (t *Table) walk(path string) (d Dialect, rest int) {
	d, rest = V2, len(path)
	if t == nil {
		return d, rest
	}
	n, at := t.root, 1
	for seg := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if n.rest != nil && strings.HasPrefix(path, "/") {
			rest = min(rest, at)
		}
		at += len(seg) + 1
		next := n.static[seg]
		if next != nil {
			d = next.dialect
		} else if next = n.param; next == nil {
			break
		}
		n = next
	}
	return d, rest
}

// Match finds the route for a method and a path. path is the path of the request target as received, without the query. Literal segments
// take precedence over parameters. If no route matches, the error is [ErrNotFound], a [*MethodError] or a [*PathError].
func (t *Table) Match(method, path string) (Match, error) {
	dialect, rest := t.walk(path)
	if err := checkPath(path[:rest]); err != nil {
		return Match{}, err
	}
	if err := checkRest(path[rest:]); err != nil {
		return Match{}, err
	}
	if dialect == V1 {
		path = dropEmptySegments(path)
	}
	n := t.root
	var params map[string]string
	at := 1 // start of the segment
	for seg := range strings.SplitSeq(path[1:], "/") {
		if n.rest != nil {
			n, params[n.rest.name] = n.rest, path[at:]
			break
		}
		at += len(seg) + 1
		if seg == "" {
			return Match{}, ErrNotFound
		}
		if next := n.static[seg]; next != nil {
			n = next
			continue
		}
		if n.param == nil {
			return Match{}, ErrNotFound
		}
		n = n.param
		if params == nil {
			params = make(map[string]string, 2)
		}
		params[n.name] = unescape(seg)
	}
	if len(n.methods) == 0 {
		return Match{}, ErrNotFound
	}
	r := n.methods[method]
	if r == nil && isAnyMethod(method) {
		r = n.methods[AnyMethod]
	}
	if r == nil {
		return Match{}, &MethodError{Allow: sortedMethods(n.methods)}
	}
	return Match{Route: r, Params: params}, nil
}

// isAnyMethod reports whether AnyMethod includes the method.
func isAnyMethod(method string) bool { return slices.Contains(strings.Fields(anyMethods), method) }

const anyMethods = "DELETE GET HEAD OPTIONS PATCH POST PUT"

func sortedMethods(m map[string]*Route) []string {
	if m[AnyMethod] != nil {
		return strings.Fields(anyMethods)
	}
	return slices.Sorted(maps.Keys(m))
}

// dropEmptySegments removes empty segments, because some v1 callers send trailing or doubled slashes. This is safe, because v1 paths are
// never forwarded.
func dropEmptySegments(path string) string {
	parts := slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
	return "/" + strings.Join(parts, "/")
}
