package gateway

import (
	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// ownDialect is the dialect, in decisions, of what the gateway does by itself.
const ownDialect = "gateway"

// did keeps what the gateway did by itself beside the decisions.
func (g *Gateway) did(org string, of spend.Owner, operation, resource, text string) {
	g.history.Did(&explain.Report{
		DecisionID: ulid.Make().String(), Time: g.deps.Now().UTC(), Revision: g.config().Revision,
		Dialect: ownDialect, Operation: operation, Caller: explain.Caller{Org: org, Team: of.Team}, Verdict: explain.Allowed,
		Own: &explain.Own{Resource: resource, Did: text}, Stages: []explain.Stage{}, Calls: []explain.Call{},
	})
}
