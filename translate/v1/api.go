package v1

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// Operation describes an operation of the v1 API.
type Operation struct {
	// ID is v1's operationId with a lower-case first letter, for example "createPod".
	ID string
	// Method and Path form the route, for example GET "/v1/pods/{podId}".
	Method, Path string
	// V2 is the operationId of the v2 operation that replaces the v1 operation, or empty.
	V2 string
	// Public reports whether the operation needs no credential.
	Public bool
	// IgnoresBody reports whether the operation accepts any body, even invalid JSON, and ignores it.
	IgnoresBody bool
}

// row is an Operation with its implementation.
type row struct {
	Operation
	// successor is the v2 path for the Link header, with the path parameters of this operation, or empty.
	successor string
	// form validates the body; nil ignores the body.
	form form
	// shortTimeout reports that clients of this operation give up after 10 seconds.
	shortTimeout bool
	serve        serve
	// id names the path parameter, or is "".
	id string
}

// API serves the v1 API. It is immutable and safe for concurrent use.
type API struct {
	cfg  Config
	deps translate.Deps
	byID map[string]*row
	// header holds the headers of every response.
	header http.Header
	quirks legacy.Quirks
	// description is the API description with the platform's name.
	description []byte
}

// New returns an API. It returns an error if the API description is not valid JSON with the platform's name from cfg.
func New(cfg Config, deps translate.Deps) (*API, error) {
	text, err := describe(cfg.Legacy.Name())
	if err != nil {
		return nil, fmt.Errorf("v1: %w", err)
	}
	a := &API{cfg: cfg, deps: deps.WithDefaults(), description: text, header: cfg.Legacy.Header()}
	a.quirks = legacy.Quirks{
		Interface: "v1", ReadFirst: true,
		RaisedSize: "raised to the minimum of 10", NoVolume: "ignored because templates of this kind do not have a volume",
		GPUsField: "gpuTypeIds", PicksDefaultPools: true, StrictComputeType: true,
		NoCPUVolume:              "ignored because CPU pods do not have a volume",
		QueryCountriesSeparately: true,
		DataCentersField:         "dataCenterIds", CountriesField: "countryCodes", VCPUsField: "vcpuCount", UnknownTypes: "gpuTypeIds",
	}
	a.byID = make(map[string]*row)
	for _, row := range operations() {
		a.byID[row.ID] = &row
	}
	return a, nil
}

// Operations lists the operations in the order of the v1 description.
func Operations() []Operation {
	rows := operations()
	list := make([]Operation, len(rows))
	for i, row := range rows {
		list[i] = row.Operation
	}
	return list
}

// WithDeps returns an API with the same configuration and other dependencies.
func (a *API) WithDeps(deps translate.Deps) *API {
	other := *a
	other.deps = deps.WithDefaults()
	return &other
}

// request is one v1 request in progress.
type request struct {
	*legacy.Session
	api   *API
	in    *translate.Incoming
	id    string // id of the resource in the path
	form  form
	body  input
	query query

	naming sync.Once // guards userID
	userID string
}

// user returns a substitute for the user id of the account. It is computed once.
func (r *request) user() string {
	r.naming.Do(func() { r.userID = translate.UserID(r.in.Account) })
	return r.userID
}

// sent returns the fields that the caller sent.
func (r *request) sent() form {
	return slices.DeleteFunc(slices.Clone(r.form), func(f field) bool { return !r.body.has(f.name) })
}

// reply is a successful response: a body to be encoded as JSON, an encoded body, or no body.
type reply struct {
	status      int
	body        any
	contentType string // of encoded
	encoded     []byte
}

// resultReply returns a function that converts the result of a v2 call to a reply in v1's form.
func resultReply(show func(any) map[string]any) func(body map[string]any, err error) (*reply, error) {
	return func(body map[string]any, err error) (*reply, error) {
		if err != nil {
			return nil, err
		}
		return ok(show(body)), nil
	}
}

func ok(body any) *reply { return &reply{status: http.StatusOK, body: body} }

// Serve responds to a request for the operation op by making v2 calls. It never returns nil and never panics.
func (a *API) Serve(ctx context.Context, op string, in *translate.Incoming, call translate.Caller) *translate.Outgoing {
	row := a.byID[op]
	if row == nil {
		return a.Refuse(&translate.Response{Status: http.StatusNotFound, Body: map[string]any{"detail": "no such operation"}})
	}
	if in == nil {
		in = &translate.Incoming{}
	}
	budget := a.cfg.Budget
	if row.shortTimeout {
		budget = a.cfg.VolumeBudget
	}
	r := &request{
		Session: legacy.NewSession(translate.NewClient(a.deps, call, in, budget), &a.quirks),
		api:     a, in: in, id: in.Params[row.id], query: query{values: in.Query},
	}
	ctx, cancel := r.WithBudget(ctx)
	defer cancel()
	answer, err := a.attempt(ctx, row, r)
	return a.answer(row, r, answer, err)
}

// initialAnswerBytes is the initial buffer size. Most responses hold one resource and fit into it.
const initialAnswerBytes = 2 << 10

// attempt calls the operation's handler and encodes its reply. It converts a panic to an error.
func (a *API) attempt(ctx context.Context, row *row, r *request) (answer *reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			a.deps.Logger.ErrorContext(ctx, "v1 translation failed", "operation", row.ID, "panic", v, "exception.stacktrace", string(debug.Stack()))
			answer, err = nil, broken()
		}
	}()
	if row.form != nil {
		body, fault := row.form.read(r.in)
		if fault != nil {
			return nil, fault
		}
		r.form, r.body = row.form, body
	}
	answer, err = row.serve(ctx, r)
	if err != nil || answer.body == nil {
		return answer, err
	}
	answer.contentType = "application/json"
	if answer.encoded, err = translate.AppendJSON(make([]byte, 0, initialAnswerBytes), answer.body); err != nil {
		return nil, broken()
	}
	return answer, nil
}

// Refuse encodes a refusal by the gateway, for example because of a missing key, in the form of v1.
func (a *API) Refuse(r *translate.Response) *translate.Outgoing {
	f := a.refused(&legacy.RefusedError{Response: r}, nil)
	return a.refusal(f, docsLink)
}

// refusal encodes a refusal that was raised outside the translation, with the given Link header.
func (a *API) refusal(f *fault, link string) *translate.Outgoing {
	out := &translate.Outgoing{Status: f.status, Header: a.header.Clone(), Reason: f.Error()}
	out.Header.Set("Link", link)
	encode(out, f.body())
	return out
}

// answer converts the result of a handler to a response.
func (a *API) answer(row *row, r *request, answer *reply, err error) *translate.Outgoing {
	out := &translate.Outgoing{Header: a.header.Clone()}
	out.Header.Set("Link", row.link(r.in.Params))
	r.Report(out, row.V2)
	if err != nil {
		f := a.faultOf(err, r.sent())
		out.Status, out.Reason = f.status, f.Error()
		if wait := r.Header().Get("Retry-After"); wait != "" &&
			(f.status == http.StatusTooManyRequests || f.status == http.StatusServiceUnavailable) {
			out.Header.Set("Retry-After", wait)
		}
		if f.wait > 0 {
			out.Header.Set("Retry-After", strconv.Itoa(int(f.wait.Seconds())))
		}
		encode(out, f.body())
		return out
	}
	out.Status, out.ContentType, out.Body = answer.status, answer.contentType, answer.encoded
	return out
}

// link returns the Link header with the v2 successor of the call, if any, and the page about v1.
func (row *row) link(params map[string]string) string {
	if row.successor == "" {
		return docsLink
	}
	return `<` + expand(row.successor, params) + `>; rel="successor-version", ` + docsLink
}

// docsLink refers to the page about the deprecation of v1 (RFC 9745, section 3).
const docsLink = `</v1/docs>; rel="deprecation"; type="text/html"`

// expand inserts path parameters into a path, escaped for use in a header.
func expand(path string, params map[string]string) string {
	for name, value := range params {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	return path
}
