package gateway

import (
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval/answers"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/engines"
	"github.com/tollgate-dev/tollgate/gateway/fleet"
	"github.com/tollgate-dev/tollgate/gateway/limits"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/overview"
	"github.com/tollgate-dev/tollgate/gateway/questions"
	"github.com/tollgate-dev/tollgate/gateway/retired"
	"github.com/tollgate-dev/tollgate/gateway/revisions"
	"github.com/tollgate-dev/tollgate/gateway/tokens"
	"github.com/tollgate-dev/tollgate/gateway/xds"
)

// operators are the features that operators question. The zero value describes their rows, which cannot be asked then.
type operators struct {
	overview  overview.Sources
	fleet     *fleet.Fleet
	limits    limits.Limits
	money     *money.Money
	alerts    *alerts.Alerts
	reports   alerts.Reports
	answers   answers.Answers
	keys      callers.Operators
	tokens    *tokens.Tokens
	retired   *retired.Calls
	envoys    *xds.Server
	decisions *decisions.Decisions
	questions *questions.Questions
	drafts    engines.Drafts
	audit     *audit.Log
	revisions *revisions.Revisions
}

// rows lists the rows of all features, in the order of the commands' and the API's descriptions.
func (o *operators) rows() []row.Row {
	return slices.Concat(
		o.overview.Rows(), o.fleet.Rows(), o.limits.Rows(), o.money.Rows(), o.alerts.Rows(), o.reports.Rows(), o.answers.Rows(), o.keys.Rows(), o.tokens.Rows(), o.retired.Rows(), o.envoys.Rows(), o.decisions.Rows(), o.questions.Rows(), o.drafts.Rows(), o.audit.Rows(), o.revisions.Rows(),
	)
}

// operators binds the features to this gateway.
func (g *Gateway) operators() *operators {
	return &operators{
		overview: overview.Sources{
			Gateways: g.fleet.Gateways, Pending: g.answers().Pending, Show: g.money.Show, Idle: g.money.Idle, Refused: g.decisions.Refused,
		},
		fleet:     g.fleet,
		limits:    limits.Limits{Current: g.view, Limiter: g.counts.Limiter},
		money:     g.money,
		alerts:    g.alerts,
		reports:   alerts.Reports{Money: g.money, Decisions: g.decisions},
		answers:   g.answers(),
		keys:      callers.Operators{Keys: g.keys, Ledger: g.money.Ledger},
		tokens:    g.tokens,
		retired:   g.retired,
		envoys:    g.envoys,
		decisions: g.decisions,
		questions: g.questions,
		drafts:    engines.Drafts{Engine: g.current.engine, Log: g.decisions.WriteLog, Isolate: g.deps.Isolate},
		audit:     g.audit.Log,
		revisions: g.revisions,
	}
}

// answers are the operators' answers to requests for approval.
func (g *Gateway) answers() answers.Answers {
	return answers.Answers{Current: g.view, Store: g.approvals}
}

// AdminRows returns the rows of any gateway for their descriptions. None of them can be asked.
func AdminRows() []row.Row {
	return admin.Deps{Features: new(operators).rows()}.Rows()
}
