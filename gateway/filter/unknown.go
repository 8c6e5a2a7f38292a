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

// Unknown selects the parts of a newer platform that are passed on although the description of its
// API does not have them.
type Unknown struct {
	// Members are those of bodies and queries, Reads the paths of GET requests. Where callers are kept
	// apart, members are not set, and reads are those below one thing: their content is
	// its owner's.
	Members, Reads bool
}

// Headers about the parts of a request that the API's description does not have (RFC 9651).
const (
	// HeaderUnknown lists those sent to the platform: a dictionary with the members of the body as
	// pointers and the parameters of the query by name, or read.
	HeaderUnknown = "X-Tollgate-Unknown"
	// HeaderIgnored lists the parameters of the query that were dropped, URL-encoded.
	HeaderIgnored = "X-Tollgate-Ignored"
)

// maxUnknown bounds the members that one body may have beside those described, and likewise the
// parameters of a query; of those dropped no more are named.
const maxUnknown = 16

// sortParameters notes which parameters of the query the operation's description does not have:
// those that the platform gets, where the organisation has them forwarded, and those that are
// dropped. The former are sent once and do not resemble one that is described.
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

// separateUnknownMembers takes the members that the operation's description does not have out of the
// body, where the organisation has them forwarded. Policies see them in the input, and
// Rebuild puts them back. Names that resemble a known one stay in the body, and the
// schema refuses them.
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

// SendsUnknown reports whether the platform gets members or parameters that the operation's
// description does not have.
func (ex *Exchange) SendsUnknown() bool {
	return ex.Body.Unknown != nil || ex.Progress.forwarded != nil
}

// unknownCostReason returns why unknown members or parameters leave the cost of a call unknown, "" if they
// do not.
func (ex *Exchange) unknownCostReason(kind operation.Kind) string {
	if !ex.SendsUnknown() || !ledger.IsCounted(kind) {
		return ""
	}
	return "the request has members or parameters whose effect is not known: " + strings.Join(ex.Event.Unknown, ", ")
}

// forwardUnknownRead makes a request that matched nothing a read of a path that the API's description
// does not have, if it may be one and the organisation has those forwarded. A path below
// one thing is a read of that; a possible call of the run interface stays refused.
func (r RequireRoute) forwardUnknownRead(ex *Exchange) (err error) {
	if ex.Tenant == nil || !ex.Tenant.Unknown.Reads || ex.Dialect != route.V2 || ex.In.Method != http.MethodGet || !errors.Is(ex.Progress.routeErr, route.ErrNotFound) {
		return ex.Progress.routeErr
	}
	op, of := r.API.UnknownRead(ex.In.Path, r.Run)
	if op == nil || of == nil && ex.Tenant.Isolation.Enabled() {
		return ex.Progress.routeErr
	}
	if of != nil {
		row, _ := operation.Of(of.ID)
		op.ID += "." + string(row.Kind)
		if _, ok := operation.Of(op.ID); !ok {
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

// writeUnknownHeaders lists on an answer the unknown parts that were sent to the platform or dropped.
func writeUnknownHeaders(ex *Exchange) {
	header := func(name string, value httpsfv.StructuredFieldValue) {
		if text, err := httpsfv.Marshal(value); err == nil { // referencesyNames in ASCII
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

// unknownNotes says which parts of a request the API's description does not have.
func unknownNotes(e *telemetry.Event) (notes []string) {
	if len(e.Unknown) > 0 {
		notes = append(notes, "not in the description of the API, and forwarded: "+strings.Join(e.Unknown, ", "))
	}
	if len(e.Ignored) > 0 {
		notes = append(notes, "query parameters not in the description of the API, and ignored: "+strings.Join(e.Ignored, ", "))
	}
	return notes
}
