package filter

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Unknown selects the parts of a request that the gateway forwards even if its API description does not contain them. A newer platform may
// support these parts.
type Unknown struct {
	// Members forwards members of bodies and queries. Reads forwards GET requests for unknown paths. If callers are isolated, Members is
	// false, and Reads applies only to paths under a resource, because the owner of the resource is known.
	Members, Reads bool
}

// Response headers about parts of the request that the API description does not contain (RFC 9651).
const (
	// HeaderUnknown lists the parts that were sent to the platform: a dictionary with body members as JSON Pointers and query parameters by
	// name, or the key read for a forwarded GET.
	HeaderUnknown = "X-Tollgate-Unknown"
	// HeaderIgnored lists the query parameters that were dropped, URL-encoded.
	HeaderIgnored = "X-Tollgate-Ignored"
)

// maxUnknown is the maximum number of undescribed members in one body, of undescribed parameters in one query, and of dropped parameters in
// HeaderIgnored.
const maxUnknown = 16

// sortParameters separates undescribed query parameters into those that are forwarded, if the organisation permits it, and those that are
// dropped. A forwarded parameter must occur once and must not resemble a described one.
func sortParameters(ex *Exchange) {
	if ex.Progress.Nested || ex.Opaque() {
		return
	}
	forwards := ex.Tenant.Unknown.Members && ex.Dialect == route.V2
	for _, name := range ex.Operation.UnknownParameters(ex.Query) {
		switch {
		case forwards && len(ex.Progress.forwarded) < maxUnknown && len(ex.Query[name]) == 1 && ex.Operation.IsUnknownParameter(name):
			ex.Progress.forwarded = append(ex.Progress.forwarded, name)
			ex.Event.Unknown = append(ex.Event.Unknown, "?"+name)
		case len(ex.Event.Ignored) < maxUnknown:
			ex.Event.Ignored = append(ex.Event.Ignored, clip(url.QueryEscape(name)))
		}
	}
}

// separateUnknownMembers moves undescribed members out of the body if the organisation forwards them. Policies see them in the input, and
// BuildRequest adds them back. Names that resemble a described one stay in the body and are refused by the schema.
func separateUnknownMembers(ex *Exchange) {
	body, isObject := ex.Body.Doc.(map[string]any)
	if !isObject || !ex.Tenant.Unknown.Members || ex.Dialect != route.V2 || ex.Progress.Nested {
		return
	}
	known, unknown := make(map[string]any, len(body)), make(map[string]any)
	for name, v := range body {
		if ex.Operation.IsUnknownMember(name) {
			unknown[name] = v
		} else {
			known[name] = v
		}
	}
	if len(unknown) == 0 || len(unknown) > maxUnknown {
		return
	}
	ex.Body.Doc, ex.Body.Unknown = known, unknown
	for name := range unknown {
		ex.Event.Unknown = append(ex.Event.Unknown, "/"+name)
	}
	slices.Sort(ex.Event.Unknown)
}

// SendsUnknown reports whether the gateway sends the platform a body member or a query parameter that the API description does not contain.
func (ex *Exchange) SendsUnknown() bool {
	return ex.Body.Unknown != nil || ex.Progress.forwarded != nil
}

// unknownCostReason explains why undescribed parts make the cost of a call unknown. It returns "" if they do not.
func (ex *Exchange) unknownCostReason(kind operation.Kind) string {
	if !ex.SendsUnknown() || !ledger.IsCounted(kind) {
		return ""
	}
	return "the effect of these members or parameters is unknown: " + strings.Join(ex.Event.Unknown, ", ")
}

// forwardUnknownRead turns an unmatched GET into a read of an unknown path, if the organisation permits it. A path under a resource belongs
// to that resource. Paths that may be calls of the run interface are refused.
func (r RequireRoute) forwardUnknownRead(ex *Exchange) (err error) {
	if ex.Tenant == nil || !ex.Tenant.Unknown.Reads || ex.Dialect != route.V2 || ex.In.Method != http.MethodGet ||
		!errors.Is(ex.Progress.routeErr, route.ErrNotFound) {
		return ex.Progress.routeErr
	}
	op, of := r.API.UnknownRead(ex.In.Path, r.Run)
	if op == nil || of == nil && ex.Tenant.Isolation.Enabled() {
		return ex.Progress.routeErr
	}
	if of != nil {
		row, _ := operation.Lookup(of.ID)
		op.ID += "." + string(row.Kind)
		if _, ok := operation.Lookup(op.ID); !ok {
			return ex.Progress.routeErr
		}
		ex.Params = map[string]string{"id": strings.Split(ex.In.Path, "/")[len(strings.Split(of.Path, "/"))-1]}
	}
	if ex.Query, err = route.ParseQuery(ex.In.Query); err != nil {
		return err
	}
	ex.Operation = op
	ex.Route = &route.Route{ID: op.ID, Dialect: route.V2, Method: op.Method, Pattern: op.Path}
	ex.Event.Operation, ex.Event.Unknown = op.ID, []string{expand(op.Path, ex.Params)}
	return nil
}

// writeUnknownHeaders sets HeaderUnknown and HeaderIgnored.
func writeUnknownHeaders(ex *Exchange) {
	header := func(name string, value httpsfv.StructuredFieldValue) {
		if text, err := httpsfv.Marshal(value); err == nil { // cannot fail: ASCII names
			ex.Response.Header.Set(name, text)
		}
	}
	if len(ex.Event.Ignored) > 0 {
		var names httpsfv.List
		for _, name := range ex.Event.Ignored {
			names = append(names, httpsfv.NewItem(name))
		}
		header(HeaderIgnored, names)
	}
	if len(ex.Event.Unknown) == 0 || ex.Sent == NotSent {
		return
	}
	told := httpsfv.NewDictionary()
	for _, part := range ex.Event.Unknown {
		kind, name := "members", part
		switch {
		case strings.HasPrefix(part, "?"):
			kind, name = "parameters", part[1:]
		case ex.Body.Unknown == nil:
			told.Add("read", httpsfv.NewItem(true))
			continue
		}
		list, _ := told.Get(kind)
		names, _ := list.(httpsfv.InnerList)
		if names.Params == nil {
			names.Params = httpsfv.NewParams()
		}
		names.Items = append(names.Items, httpsfv.NewItem(name))
		told.Add(kind, names)
	}
	header(HeaderUnknown, told)
}

// unknownNotes describes the parts of a request that the API description does not contain.
func unknownNotes(e *telemetry.Event) (notes []string) {
	if len(e.Unknown) > 0 {
		notes = append(notes, "forwarded although missing from the API description: "+strings.Join(e.Unknown, ", "))
	}
	if len(e.Ignored) > 0 {
		notes = append(notes, "ignored query parameters, which are missing from the API description: "+strings.Join(e.Ignored, ", "))
	}
	return notes
}
