package graphql

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

//go:embed schema.graphql
var schemaSource string

// API serves the platform's legacy GraphQL API with v2 calls. It is safe for concurrent use. It only keeps a cache of parsed documents in
// memory; persistent data is in the store of its Deps.
type API struct {
	cfg    Config
	deps   translate.Deps
	engine *engine.Engine[*exchange]
	quirks legacy.Quirks
	header http.Header // of every response
	naming naming
}

// New returns an API whose schema fields are connected with their resolvers. It returns an error if a field has no resolver or a resolver
// has no field.
func New(cfg Config, deps translate.Deps) (*API, error) {
	source := strings.NewReplacer("__BRAND__", cfg.Legacy.Name(), "__brand__", cfg.Legacy.LowerName()).Replace(schemaSource)
	names := newNaming(source, cfg.Legacy)
	e, err := engine.New(engine.Config[*exchange]{
		Schema: source, Types: resolvers(cfg), Introspection: cfg.Introspection, Removed: removedReason, Named: names.named,
		Limits: cfg.Limits.Limits,
	})
	quirks := legacy.Quirks{
		Interface: "GraphQL", GPUsField: "gpuIds", DefaultIdle: 10,
		RaisedSize: "raised to the minimum of 10", NoVolume: "ignored because serverless templates do not have a volume",
		NoCPUVolume:      "ignored because CPU pods do not have a persistent volume",
		DataCentersField: "dataCenterId", CountriesField: "countryCode", VCPUsField: "minVcpuCount", UnknownTypes: "GPU type not found",
	}
	return &API{cfg: cfg, deps: deps.WithDefaults(), engine: e, quirks: quirks, header: cfg.Legacy.Header(), naming: names}, err
}

// WithDeps returns an API with the same configuration and other dependencies.
func (a *API) WithDeps(deps translate.Deps) *API {
	other := *a
	other.deps = deps.WithDefaults()
	return &other
}

// naming maps between the schema's names and the names of clients for members that contain the platform's name.
type naming struct {
	own    map[string]bool
	common legacy.Config
}

var (
	isWord = regexp.MustCompile(`\bis[A-Z]\w*`)
	// wordOf matches members that begin with the platform's name.
	wordOf = regexp.MustCompile(`\b([A-Za-z][a-z0-9]*)(Ip|Endpoint|EndpointAmount)\b`)
)

// newNaming collects the members of the schema that contain the platform's name. It excludes the members of introspection (GraphQL
// specification, section 4.2).
func newNaming(schema string, c legacy.Config) naming {
	own := map[string]bool{"isDeprecated": true, "isRepeatable": true, "isOneOf": true}
	for _, name := range append(isWord.FindAllString(schema, -1), wordOf.FindAllString(schema, -1)...) {
		own[name] = true
	}
	return naming{own: own, common: c}
}

// isBrandMember reports whether member has the form is<Word> and is not in the schema, so that <Word> is a client's name for the platform.
// It returns false if the operator has configured the name.
func (n naming) isBrandMember(member string) bool {
	return n.common.Brand == "" && strings.HasPrefix(member, "is") && !n.own[member] && isWord.FindString(member) == member
}

// named returns the schema's name of a field or an input member.
func (n naming) named(member string) string {
	switch {
	case n.isBrandMember(member):
		return "is" + n.common.Name()
	case !strings.HasSuffix(member, "Ip") && !strings.Contains(member, "Endpoint"):
		return member // as most members, without the cost of a regular expression
	}
	if m := wordOf.FindStringSubmatch(member); m != nil && m[0] == member && !n.own[member] && (n.common.Brand == "" || strings.EqualFold(m[1], n.common.Brand)) {
		return n.common.LowerName() + m[2]
	}
	return member
}

// brandIn returns the name that a valid document uses for the platform, or "".
func (n naming) brandIn(document string) string {
	outside := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for member := range strings.FieldsFuncSeq(document, outside) {
		if n.isBrandMember(member) {
			return strings.TrimPrefix(member, "is")
		}
	}
	return ""
}

// Serve responds to a POST of a GraphQL request. in.Body is the decoded JSON object, or the document as a string if the content type is
// application/graphql. An empty in.Account means that the request has no credential. Such a request may read the catalog if
// in.CatalogAllowed is set; otherwise it only gets refusals of fields that v2 does not support.
//
// Serve never returns nil and never panics.
func (a *API) Serve(ctx context.Context, in *translate.Incoming, call translate.Caller) (out *translate.Outgoing) {
	defer func() {
		if p := recover(); p != nil {
			a.deps.Logger.ErrorContext(ctx, "graphql request failed", "panic", fmt.Sprint(p))
			out = a.refused(http.StatusInternalServerError, internal(nil))
		}
	}()
	if in == nil {
		in = &translate.Incoming{}
	}
	op, faults := a.prepare(in)
	refused := in.Account == "" && !in.CatalogAllowed && (len(faults) > 0 || !op.unsupportedOnly)
	switch {
	case !refused && len(faults) > 0:
		return a.rejected(faults)
	case refused, in.Account == "" && !op.public:
		return a.refused(http.StatusUnauthorized,
			newFault(textUnauthorized+": "+translate.MissingKeyText, codeUnauthenticated, http.StatusUnauthorized))
	}
	budget, timeout := a.cfg.Timeout, a.cfg.Timeout
	if op.creates {
		budget, timeout = min(a.cfg.CreateBudget, a.cfg.CreateTimeout), a.cfg.CreateTimeout
	}
	m := &meter{next: call, most: a.cfg.Limits.Calls}
	x := &exchange{
		Session: legacy.NewSession(translate.NewClient(a.deps, m, in, budget), &a.quirks),
		api:     a, in: in, meter: m,
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if op.brand != "" && !x.anonymous() {
		x.RememberSpelling(ctx, a.cfg.Legacy, op.brand)
	}
	x.WarnUnavailable(op.Unavailable)
	out = a.answer(ctx, op, x)
	out.Operations = a.fieldNames(op.RequestedRoots)
	return out
}

// answer executes an operation and encodes its result.
func (a *API) answer(ctx context.Context, op *operation, x *exchange) *translate.Outgoing {
	r := op.Execute(ctx, x)
	out := a.outgoing(http.StatusOK)
	x.Report(out, "")
	entries := make([]any, len(r.Failures))
	for i, failure := range r.Failures {
		f := asFault(failure.Err)
		entries[i] = f.entry(failure.Path)
		out.Reason = cmp.Or(out.Reason, f.message)
		if f.cause != nil { // logged, never sent to callers
			a.deps.Logger.LogAttrs(ctx, slog.LevelWarn, "graphql field failed", slog.String("operation", op.Name), slog.Any("error", f.cause))
		}
		if f.http != 0 && out.Status != http.StatusUnauthorized {
			out.Status = f.http
		}
		if f.retryAfter != "" {
			out.Header.Set("Retry-After", f.retryAfter)
		}
	}
	data := r.Data
	if out.Status == http.StatusUnauthorized {
		data = nil
	}
	out.Body, out.Failed = envelope(data, entries), len(entries) > 0
	return out
}

// rejected returns the response to a request that was not executed.
func (a *API) rejected(faults []*fault) *translate.Outgoing {
	status := http.StatusBadRequest
	for _, f := range faults {
		if f.http != 0 {
			status = f.http
		}
	}
	return a.refused(status, faults...)
}

func (a *API) refused(status int, faults ...*fault) *translate.Outgoing {
	out := a.outgoing(status)
	entries := make([]any, len(faults))
	for i, f := range faults {
		entries[i] = f.entry(nil)
	}
	out.Body, out.Failed, out.Reason = envelope(nil, entries), true, faults[0].message
	return out
}

// envelope encodes a response. It omits an empty "errors" member, because clients treat its presence as a failure.
func envelope(data []byte, errors []any) []byte {
	buf := append(make([]byte, 0, len(data)+64), '{')
	if data != nil {
		buf = append(append(buf, `"data":`...), data...)
	}
	if len(errors) > 0 {
		if data != nil {
			buf = append(buf, ',')
		}
		var err error
		if buf, err = translate.AppendJSON(append(buf, `"errors":`...), errors); err != nil {
			panic("graphql: " + err.Error()) // strings and numbers always encode
		}
	}
	return append(buf, '}')
}

func (a *API) outgoing(status int) *translate.Outgoing {
	h := a.header.Clone()
	h.Set("Link", `</v2/openapi.json>; rel="successor-version"`)
	return &translate.Outgoing{Status: status, Header: h, ContentType: "application/json"}
}

// Refuse encodes a refusal by the gateway, for example because of a missing key. It uses the HTTP statuses that clients check. A refusal by
// a policy or budget becomes a failed request with status 200, as clients expect.
func (a *API) Refuse(r *translate.Response) *translate.Outgoing {
	status := r.Status
	if status == http.StatusPaymentRequired || status == http.StatusForbidden {
		status = http.StatusOK
	}
	return a.refused(status, refusal(r, ""))
}
