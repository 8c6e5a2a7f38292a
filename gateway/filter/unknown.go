package filter

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Unknown selects the parts of a newer platform that are passed on although the description of its
// API does not have them.
type Unknown struct {
	// Members are those of bodies, Reads the paths of GET requests. Where callers are kept
	// apart, members are not set, and reads are those below one thing: their content is
	// its owner's.
	Members, Reads bool
}

// HeaderUnknown lists the unknown parts sent to the platform: a dictionary
// (RFC 9651) with the members of the body as pointers, or read.
const HeaderUnknown = "X-Tollgate-Unknown"

// maxUnknown bounds the members that one body may have beside those described.
const maxUnknown = 16

// setAside takes the members that the operation's description does not have out of the
// body, where the organisation has them forwarded. Policies see them in the input, and
// Rebuild puts them back. Names that resemble a known one stay in the body, and the
// schema refuses them.
func setAside(ex *Exchange) {
	body, isObject := ex.Body.Doc.(map[string]any)
	if !isObject || !ex.Tenant.Unknown.Members || ex.Dialect != route.V2 || ex.Path.Nested {
		return
	}
	known, unknown := make(map[string]any, len(body)), make(map[string]any)
	for name, v := range body {
		if ex.Operation.Foreign(name) {
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

// uncosted returns why unknown members leave the cost of a call unknown, "" if they
// do not.
func (ex *Exchange) uncosted(kind operation.Kind) string {
	if ex.Body.Unknown == nil || !spend.Counts(kind) {
		return ""
	}
	return "the body has members whose effect is not known: " + strings.Join(ex.Event.Unknown, ", ")
}

// forward makes a request that matched nothing a read of a path that the API's description
// does not have, if it may be one and the organisation has those forwarded. A path below
// one thing is a read of that; a possible call of the run interface stays refused.
func (r Routed) forward(ex *Exchange) (err error) {
	if ex.Tenant == nil || !ex.Tenant.Unknown.Reads || ex.Dialect != route.V2 || ex.In.Method != http.MethodGet || !errors.Is(ex.Path.misrouted, route.ErrNotFound) {
		return ex.Path.misrouted
	}
	op, of := r.API.UnknownRead(ex.In.Path, r.Run)
	if op == nil || of == nil && ex.Tenant.Isolation.Applies() {
		return ex.Path.misrouted
	}
	if of != nil {
		row, _ := operation.Of(of.ID)
		op.ID += "." + string(row.Kind)
		if _, ok := operation.Of(op.ID); !ok {
			return ex.Path.misrouted
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

// tellUnknown lists on an answer the unknown parts sent to the platform.
func tellUnknown(ex *Exchange) {
	if len(ex.Event.Unknown) == 0 || ex.Sent == NotSent {
		return
	}
	told := httpsfv.NewDictionary()
	if ex.Body.Unknown == nil {
		told.Add("read", httpsfv.NewItem(true))
	} else {
		members := httpsfv.InnerList{Params: httpsfv.NewParams()}
		for _, name := range ex.Event.Unknown {
			members.Items = append(members.Items, httpsfv.NewItem(name))
		}
		told.Add("members", members)
	}
	if text, err := httpsfv.Marshal(told); err == nil { // names in ASCII
		ex.Answer.Header.Set(HeaderUnknown, text)
	}
}
