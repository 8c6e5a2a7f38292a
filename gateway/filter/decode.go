package filter

import (
	"context"
	"mime"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// DecodeBody parses the body once, as strict JSON. Schema validation, policies, prices and the outbound body all use the parsed value.
type DecodeBody struct{}

// Name implements Filter.
func (DecodeBody) Name() string { return "decode body" }

// Request sets ex.Body.Doc and ex.Body.HasDoc. It returns 415 if the media type is not supported or the body is compressed, and 400 if the
// body is missing, unexpected or not strict JSON.
func (DecodeBody) Request(_ context.Context, ex *Exchange) error {
	body := ex.In.Body
	if ex.Opaque() || ex.Route != nil && ex.Route.IgnoresBody {
		return nil
	}
	if err := plainCoding(ex); err != nil {
		return err
	}
	switch ex.Dialect {
	case route.V2, route.Run, route.Chat:
		if !ex.Operation.HasBody {
			if len(body) > 0 && !isEmptyObject(body) {
				return problem.BadRequest.New("this operation takes no body")
			}
			return nil // many clients send {} with every request; it is dropped
		}
		if len(body) == 0 {
			if !ex.Operation.BodyRequired {
				return nil
			}
			return problem.BadSyntax.New("this operation requires a JSON body")
		}
		if err := jsonType(ex); err != nil {
			return err
		}
	case route.GraphQL:
		if isGraphQLDocument(ex) {
			ex.Body.Doc, ex.Body.HasDoc = map[string]any{"query": string(body)}, true
			return nil
		}
	case route.V1:
		// Several v1 clients omit the media type, so any body is parsed as JSON.
	}
	if len(body) == 0 {
		return nil
	}
	doc, err := ex.decode()
	if err != nil {
		return err
	}
	if ex.Body.Doc, err = asObject(ex, doc); err != nil {
		return err
	}
	ex.Body.HasDoc = true
	return nil
}

// asObject wraps a list body in an object; see operation.Spec.BodyMember.
func asObject(ex *Exchange, doc any) (any, error) {
	name := ex.listMember()
	if name == "" {
		return doc, nil
	}
	list, ok := doc.([]any)
	if !ok {
		return nil, problem.Invalid.New("the body must be a list")
	}
	return map[string]any{name: list}, nil
}

// listMember returns the member name under which a list body is processed, or "" for other bodies.
func (ex *Exchange) listMember() string {
	if ex.Operation == nil {
		return ""
	}
	row, _ := operation.Lookup(ex.Operation.ID)
	return row.BodyMember
}

// decode parses a body. It checks the syntax of a job's input, but the input is decoded only when it is read, because it is meant for the
// worker.
func (ex *Exchange) decode() (any, error) {
	switch {
	case !ex.Dialect.IsRun():
		return strictjson.Decode(ex.In.Body, strictjson.DefaultLimits())
	case ex.Dialect == route.Run:
		return strictjson.DecodeWithRaw(ex.In.Body, "input", strictjson.RunLimits())
	default:
		return strictjson.DecodeInPlace(ex.In.Body, strictjson.RunLimits())
	}
}

// isEmptyObject reports whether a body is an empty JSON object.
func isEmptyObject(body []byte) bool {
	doc, err := strictjson.Decode(body, strictjson.Limits{Depth: 1, Values: 1})
	m, ok := doc.(map[string]any)
	return err == nil && ok && len(m) == 0
}

// plainCoding refuses compressed bodies, which policies cannot read.
func plainCoding(ex *Exchange) error {
	if len(ex.In.Header["Content-Encoding"]) > 0 {
		return problem.UnsupportedMedia.New("compressed request bodies are not supported; remove Content-Encoding")
	}
	return nil
}

// StrictJSON returns the decoded body, with numbers as json.Number. It returns a problem if the media type is not JSON or the body is not
// strict JSON.
func (ex *Exchange) StrictJSON() (any, error) {
	if err := plainCoding(ex); err != nil {
		return nil, err
	}
	if err := jsonType(ex); err != nil {
		return nil, err
	}
	return strictjson.Decode(ex.In.Body, strictjson.DefaultLimits())
}

func jsonType(ex *Exchange) error {
	types := ex.In.Header["Content-Type"]
	if len(types) != 1 {
		return problem.UnsupportedMedia.New("the request must have exactly one Content-Type header: application/json")
	}
	if types[0] == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(types[0])
	if err != nil || media != "application/json" {
		return problem.UnsupportedMedia.New("the Content-Type must be application/json")
	}
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return problem.UnsupportedMedia.New("the Content-Type must have no parameter except charset=utf-8")
		}
	}
	return nil
}

func isGraphQLDocument(ex *Exchange) bool {
	media, _, err := mime.ParseMediaType(ex.In.Header.Get("Content-Type"))
	return err == nil && media == "application/graphql"
}
