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

// Endpoint is one question that operators can ask.
type Endpoint struct {
	// Pattern is the route: a method, a space and a path, such as "GET /admin/limits". A path such as /admin/decisions/{id} has a
	// parameter in it.
	Pattern string
	// Summary is one line for the API's description and for help.
	Summary string
	// Role is required to ask; with Anyone no token is.
	Role Role
	// Subject bounds askers bound to an organisation.
	Subject Subject
	// Mutates marks questions that change something. Each is logged, and recorded in the audit log.
	Mutates bool
	// AuditsReads marks questions about the records of callers: the audit log names each asker.
	AuditsReads bool
	// Handlerl answers. It is the zero Func where Handle does.
	Handler Handler
	// Response is the type of the answer as JSON where the function returns an interface.
	Response reflect.Type
	// Status is the status of success; 0 is 200, or 204 without an answer.
	Status int
	// ErrorStatuses lists the statuses of refusals, besides those that every row with a role has.
	ErrorStatuses []int
	// Body is the type of the request's content, nil for none.
	Body reflect.Type
	// ContentType is the content type of an answer that is not JSON.
	ContentType string
	// HTTPHandler writes the whole answer of a row that is no function: probes, metrics and profiles. Its parameters are Params.
	HTTPHandler http.HandlerFunc
	// Params describes the parameters of Handle, which judges them itself.
	Params []Param
	// Commands are the commands that ask this.
	Commands []Command
}

// Command is a row on the command line.
type Command struct {
	// Use is the command with its arguments, such as "limits show ORG". An argument in capitals is the parameter of that name; KEY is the
	// parameter key or, without one, id. All other parameters are flags.
	Use string
	// Short and Long are help; an empty Short is the row's Summary.
	Short, Long string
	// Example is a command line or several, without the indent.
	Example string
	// Defaults replaces defaults of parameters.
	Defaults map[string]string
	// Fixed are parameters that the command sets itself, in the place of a flag.
	Fixed map[string]string
}

// Subject is the subject of a row. It limits askers bound to an organisation.
type Subject int

const (
	// SubjectGateway rows are about the gateway as a whole, and refuse askers bound to an organisation.
	SubjectGateway Subject = iota
	// SubjectOrg rows are about the organisation that the parameter org names. Askers bound to one get their own by default.
	SubjectOrg
	// SubjectCaller rows answer each asker about their own organisations.
	SubjectCaller
)

// Handler is a question with typed parameters. The zero Func has none and cannot be asked.
type Handler struct {
	params []Param
	in     reflect.Type
	out    reflect.Type
	call   func(ctx context.Context, s Principal, in reflect.Value) (any, error)
}

// NoContent is the answer of questions that answer with 204.
type NoContent struct{}

// Writer is the answer of questions that answer with something else than JSON, which Media of the row says. It is called once. An error
// before the first byte is a refusal.
type Writer func(w io.Writer) error

// NoParams are the parameters of questions that have none.
type NoParams struct{}

// HandlerFor makes a Func. The exported fields of P are the parameters; see [ParamsOf] for their tags. It panics for a P that is no such struct,
// which the first test of the row shows.
func HandlerFor[P, A any](ask func(ctx context.Context, s Principal, p P) (A, error)) Handler {
	in := reflect.TypeFor[P]()
	return Handler{
		params: ParamsOf(in), in: in, out: reflect.TypeFor[A](),
		call: func(ctx context.Context, s Principal, in reflect.Value) (any, error) {
			p, _ := reflect.TypeAssert[P](in) // it was made of this type
			a, err := ask(ctx, s, p)
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

// Parameters lists the parameters of the row.
func (r *Endpoint) Parameters() []Param {
	if r.HTTPHandler != nil {
		return r.Params
	}
	return r.Handler.params
}

// ResponseType returns the type of the answer as JSON, nil if it is none.
func (r *Endpoint) ResponseType() reflect.Type {
	switch {
	case r.Response != nil:
		return r.Response
	case r.HTTPHandler != nil || r.ContentType != "" || r.Handler.out == reflect.TypeFor[NoContent]():
		return nil
	}
	return r.Handler.out
}

// Success returns the status of an answer.
func (r *Endpoint) Success() int {
	if r.ResponseType() == nil && r.ContentType == "" {
		return cmp.Or(r.Status, http.StatusNoContent)
	}
	return cmp.Or(r.Status, http.StatusOK)
}

// Admit reports whether someone may ask this of an organisation, which may be "". The error is a [RefusedError]. Admit returns the
// organisation of the question: the asker's own where none is named.
func (r *Endpoint) Admit(s Principal, org string) (string, error) {
	switch {
	case r.Role == Anyone:
		return org, nil
	case !s.Has(r.Role):
		return "", RefusedError{http.StatusForbidden, "the role " + string(r.Role) + " is required"}
	case s.Org == "" || r.Subject == SubjectCaller:
		return org, nil
	case r.Subject == SubjectGateway || org != "" && org != s.Org:
		return "", RefusedError{http.StatusForbidden, "the token is bound to organisation " + s.Org}
	}
	return s.Org, nil
}

// Invoke asks the row. values are the parameters, those of the path among them, and body is the content of the request. The error is a
// [RefusedError], [FaultsError], or the function's own.
func (r *Endpoint) Invoke(ctx context.Context, s Principal, values url.Values, body []byte) (any, error) {
	org, err := r.Admit(s, values.Get("org"))
	if err != nil {
		return nil, err
	}
	if r.Handler.call == nil {
		panic("row: " + r.Pattern + " is no function")
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
