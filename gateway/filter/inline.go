package filter

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// InLine refuses what a door cannot serve that neither changes bodies nor sees
// answers. It stands in the place of Translate, in the chain of such a door alone.
type InLine struct{}

// Name implements Filter.
func (InLine) Name() string { return "in line" }

// Request refuses with 421, naming what for the gateway must be on the way of the call.
// It does so before the call is judged, so that what is kept from a caller is refused
// like everything else.
func (InLine) Request(_ context.Context, ex *Exchange) error {
	if ex.Dialect != route.V2 {
		return needsInLine("calls in old dialects are carried out by the gateway")
	}
	row, _ := operation.Of(ex.Operation.ID)
	verb := row.Does(ex.Doc)
	switch {
	case !ex.Tenant.Isolation.exempts(ex.Caller):
		return needsInLine("the organisation keeps resources apart, which takes the answer")
	case len(ex.In.Header[HeaderIdempotencyKey]) > 0 && row.Once(ex.Doc):
		return needsInLine("an " + HeaderIdempotencyKey + " is kept with the answer")
	case reserved(ex, row, verb):
		return needsInLine("the organisation has budgets, and only the answer says what the call has come to cost")
	case ex.Ports.Audit != nil && verb.Changes():
		return needsInLine("the audit log records what became of the call, which only the answer says")
	}
	return nil
}

// Verbatim refuses calls that are not sent as their callers wrote them. It stands behind
// Rebuild, in the chain of a door that does not change bodies.
type Verbatim struct{}

// Name implements Filter.
func (Verbatim) Name() string { return "verbatim" }

// Request refuses with 421 a body of which the platform would get another one.
func (Verbatim) Request(_ context.Context, ex *Exchange) error {
	if len(ex.In.Body) == 0 && len(ex.Out.Body) == 0 {
		return nil
	}
	var given []byte
	if doc, err := strictjson.Decode(ex.In.Body, strictjson.DefaultLimits()); err == nil {
		if given, err = strictjson.Append(nil, doc); err != nil {
			return fmt.Errorf("encode the inbound body: %w", err)
		}
	}
	if !bytes.Equal(given, ex.Out.Body) {
		return needsInLine("the platform is to get another body than the caller's")
	}
	return nil
}

func needsInLine(why string) error {
	return problem.Misdirected.New(why + ": it takes a gateway in line, not Envoy's ext_authz filter")
}
