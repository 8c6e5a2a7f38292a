package route

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Dialect is the interface a caller speaks.
type Dialect string

// The dialects.
const (
	V2      Dialect = "v2"
	V1      Dialect = "v1"
	GraphQL Dialect = "graphql"
	// Run is the run interface; Chat is the part of it that language models answer,
	// with errors of another shape.
	Run  Dialect = "run"
	Chat Dialect = "chat"
)

// IsRun reports whether the dialect belongs to the run interface.
func (d Dialect) IsRun() bool { return d == Run || d == Chat }

// Route is one operation at one place.
type Route struct {
	// ID is the operation's name within its dialect.
	ID      string
	Dialect Dialect
	// Method is AnyMethod, or the one the route has.
	Method string
	// Pattern is the path with {name} for parameters, e.g. "/v2/pods/{id}". A
	// parameter is always one whole segment, but for a last {name...}, which is all
	// of the path that is left, as it was sent: in any spelling, but without dot segments.
	Pattern string
	// Public routes are answered without a credential.
	Public bool
	// IgnoresBody routes read what body there is, and never decode it.
	IgnoresBody bool
}

// AnyMethod is the method of a route that has GET, HEAD, POST, PUT, PATCH, DELETE
// and OPTIONS.
const AnyMethod = "*"

// Match is the meaning of a request target.
type Match struct {
	Route *Route
	// Params holds the decoded path parameters by name, nil when there are none.
	Params map[string]string
}

// ErrNotFound is returned when no route has the path.
var ErrNotFound = errors.New("route: no operation has this path")

// Suggest returns the path of a route that was probably meant by one without a route: the path below /v2 or /v1, without a slash at its
// end. It returns "" for none.
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

// MethodError is returned when routes have the path but none the method.
type MethodError struct {
	// Allow lists the methods the path has, sorted.
	Allow []string
}

// Error implements error.
func (e *MethodError) Error() string {
	return "route: the path takes only " + strings.Join(e.Allow, ", ")
}

// PathError is returned for a path that could be read in more than one way.
type PathError struct {
	// Reason is the text for the caller; it does not repeat the path.
	Reason string
}

// Error implements error.
func (e *PathError) Error() string { return "route: " + e.Reason }

// Table matches requests. It is immutable and safe for concurrent use.
type Table struct {
	root *node
}

type node struct {
	static map[string]*node
	// param is the child for a {name} segment.
	param   *node
	name    string // of the parameter this node stands for
	rest    *node  // the child for a last {name...}
	methods map[string]*Route
	// dialect is that of the first route at or below this node.
	dialect Dialect
}

// NewTable builds a Table. Two routes of the same method and shape, or two
// names for the parameter at one place, are an error that names both.
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
		return fmt.Errorf("routes %s and %s both answer %s %s", first.ID, r.ID, r.Method, r.Pattern)
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
			return nil, fmt.Errorf("parameter {%s} is called {%s} elsewhere", name, n.param.name)
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

// Dialect returns the dialect in whose error shape a path is refused, matched or
// not: that of the last literal segment the path shares with a route, V2 without
// any.
func (t *Table) Dialect(path string) Dialect {
	d := V2
	if t == nil {
		return d
	}
	n := t.root
	for seg := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		next := n.static[seg]
		if next != nil {
			d = next.dialect
		} else if next = n.param; next == nil {
			return d
		}
		n = next
	}
	return d
}

// rest returns where the part of a path begins that a {name...} stands for, the length of the path without one.
func (t *Table) rest(path string) int {
	n, at := t.root, 1
	for seg := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if n.rest != nil && strings.HasPrefix(path, "/") {
			return at
		}
		next := n.static[seg]
		if next == nil {
			next = n.param
		}
		if next == nil {
			break
		}
		n = next
		at += len(seg) + 1
	}
	return len(path)
}

// Match finds the route of a method and a raw path (the request target up to
// the question mark, as received). It returns ErrNotFound, a *MethodError or a
// *PathError when there is none. Literal segments win over parameters.
func (t *Table) Match(method, path string) (Match, error) {
	rest := t.rest(path)
	if err := checkPath(path[:rest]); err != nil {
		return Match{}, err
	}
	if err := checkRest(path[rest:]); err != nil {
		return Match{}, err
	}
	if t.Dialect(path) == V1 {
		path = dropEmptySegments(path)
	}
	n := t.root
	var params map[string]string
	at := 1 // where the segment begins
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

// isAnyMethod reports whether AnyMethod includes a method.
func isAnyMethod(method string) bool { return slices.Contains(strings.Fields(anyMethods), method) }

const anyMethods = "DELETE GET HEAD OPTIONS PATCH POST PUT"

func sortedMethods(m map[string]*Route) []string {
	if m[AnyMethod] != nil {
		return strings.Fields(anyMethods)
	}
	return slices.Sorted(maps.Keys(m))
}

// dropEmptySegments drops empty segments: v1 callers are known to write a trailing slash or
// two slashes in a row. Safe there, because a v1 path is never forwarded.
func dropEmptySegments(path string) string {
	parts := slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
	return "/" + strings.Join(parts, "/")
}
