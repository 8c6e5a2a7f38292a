package adminapi

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
)

// Endpoint is an operation of the admin API.
type Endpoint struct {
	// Pattern is the route: a method, a space and a path, such as "GET /admin/limits". The path may contain parameters:
	// /admin/decisions/{id}.
	Pattern string
	// Summary is a one-line description for the API description and for help.
	Summary string
	// Role is the required role. Anyone means that no token is required.
	Role Role
	// Subject limits what principals bound to an organisation can access.
	Subject Subject
	// Mutates is set if the endpoint changes something. Each call is logged and audited.
	Mutates bool
	// AuditsReads is set if the endpoint reads records of callers. The audit log then names each principal that calls it.
	AuditsReads bool
	// Handler implements the endpoint. It is zero if HTTPHandler is set.
	Handler Handler
	// Response is the type of the JSON response if the handler function returns an interface.
	Response reflect.Type
	// Status is the status of a successful response; 0 means 200, or 204 if the response is empty.
	Status int
	// ErrorStatuses lists the statuses of errors in addition to the statuses that every endpoint with a role can return.
	ErrorStatuses []int
	// Body is the type of the request body, or nil.
	Body reflect.Type
	// ContentType is the content type of a response that is not JSON.
	ContentType string
	// HTTPHandler writes the whole response of an endpoint without a Handler, such as a probe, metrics or a profile. Params
	// describes its parameters.
	HTTPHandler http.HandlerFunc
	// Params describes the parameters of HTTPHandler, which checks them itself.
	Params []Param
	// Commands are the commands that call the endpoint.
	Commands []Command
}

// Command is a command of the command line that calls an endpoint.
type Command struct {
	// Use is the command with its arguments, such as "limits show ORG". An uppercase argument is the parameter of that name; KEY is
	// the parameter key or, if the endpoint lacks it, id. All other parameters are flags.
	Use string
	// Heading is the heading in the help of tollgate that lists the first word of Use: Run, Spend, Policy, Access or Operate. It is empty if
	// another command sets it. Group describes the group of commands that begin with the first word of Use. One command of the group sets it.
	Heading, Group string
	// Short and Long are the help texts. An empty Short means the endpoint's Summary.
	Short, Long string
	// Example is one or more command lines, without indentation.
	Example string
	// Defaults overrides the default values of parameters.
	Defaults map[string]string
	// Fixed contains parameters that the command sets itself and that are not flags.
	Fixed map[string]string
}

// Subject is the subject of an endpoint. It determines which calls principals can make if they are bound to an organisation.
type Subject int

const (
	// SubjectGateway endpoints concern the whole gateway. Principals bound to an organisation cannot call them.
	SubjectGateway Subject = iota
	// SubjectOrg endpoints concern the organisation in the parameter org, which defaults to the principal's own organisation if it
	// is bound to one.
	SubjectOrg
	// SubjectCaller endpoints return only data of organisations that the principal can access.
	SubjectCaller
)

// Handler is a function with typed parameters that implements an endpoint. The zero Handler cannot be called.
type Handler struct {
	params []Param
	in     reflect.Type
	out    reflect.Type
	call   func(ctx context.Context, s Principal, in reflect.Value) (any, error)
}

// NoContent is the response type of endpoints that respond with 204.
type NoContent struct{}

// Writer is the response type of endpoints that do not respond with JSON. Such endpoints set ContentType. A Writer is called once. If it
// fails before it has written a byte, the gateway sends an error response.
type Writer func(w io.Writer) error

// NoParams is the parameter type of endpoints without parameters.
type NoParams struct{}

// HandlerFor returns a Handler that calls fn. The exported fields of the struct P are the parameters of the endpoint; see [ParamsOf] for
// their tags. HandlerFor panics if P is not a valid struct of parameters.
func HandlerFor[P, A any](fn func(ctx context.Context, s Principal, p P) (A, error)) Handler {
	in := reflect.TypeFor[P]()
	return Handler{
		params: ParamsOf(in), in: in, out: reflect.TypeFor[A](),
		call: func(ctx context.Context, s Principal, in reflect.Value) (any, error) {
			p, _ := reflect.TypeAssert[P](in) // read has created it
			a, err := fn(ctx, s, p)
			if err != nil {
				return nil, err
			}
			return a, nil
		},
	}
}

// Method returns the method of the pattern.
func (r *Endpoint) Method() string { m, _, _ := strings.Cut(r.Pattern, " "); return m }

// Path returns the path of the pattern.
func (r *Endpoint) Path() string { _, p, _ := strings.Cut(r.Pattern, " "); return p }

// Parameters returns the parameters of the endpoint.
func (r *Endpoint) Parameters() []Param {
	if r.HTTPHandler != nil {
		return r.Params
	}
	return r.Handler.params
}

// ResponseType returns the type of the JSON response, or nil.
func (r *Endpoint) ResponseType() reflect.Type {
	switch {
	case r.Response != nil:
		return r.Response
	case r.HTTPHandler != nil || r.ContentType != "" || r.Handler.out == reflect.TypeFor[NoContent]():
		return nil
	}
	return r.Handler.out
}

// Success returns the status of a successful response.
func (r *Endpoint) Success() int {
	if r.ResponseType() == nil && r.ContentType == "" {
		return cmp.Or(r.Status, http.StatusNoContent)
	}
	return cmp.Or(r.Status, http.StatusOK)
}

// Admit checks whether a principal may call the endpoint for an organisation. It returns the ID of the organisation that the call applies
// to: org or, if org is "", the organisation that the principal is bound to. Admit returns a [RefusedError] if the call is not permitted.
func (r *Endpoint) Admit(s Principal, org string) (string, error) {
	switch {
	case r.Role == Anyone:
		return org, nil
	case !s.Has(r.Role):
		return "", RefusedError{http.StatusForbidden, "role " + string(r.Role) + " is required"}
	case s.Org == "" || r.Subject == SubjectCaller:
		return org, nil
	case r.Subject == SubjectGateway || org != "" && org != s.Org:
		return "", RefusedError{http.StatusForbidden, "token is bound to organisation " + s.Org}
	}
	return s.Org, nil
}

// Invoke calls the endpoint. values are the parameters, including those in the path, and body is the request body. Invoke returns a
// [RefusedError], a [FaultsError], or the error of the handler function.
func (r *Endpoint) Invoke(ctx context.Context, s Principal, values url.Values, body []byte) (any, error) {
	org, err := r.Admit(s, values.Get("org"))
	if err != nil {
		return nil, err
	}
	if r.Handler.call == nil {
		panic("adminapi: handler of " + r.Pattern + " is missing")
	}
	if r.Subject == SubjectOrg && org != values.Get("org") {
		bound := url.Values{}
		maps.Copy(bound, values)
		bound.Set("org", org)
		values = bound
	}
	in, err := r.Handler.read(values, body, s)
	if err != nil {
		return nil, err
	}
	return r.Handler.call(ctx, s, in)
}
