package gateway

import (
	"errors"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/account"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/approval/grants"
	"github.com/tollgate-dev/tollgate/gateway/check"
	"github.com/tollgate-dev/tollgate/gateway/coverage"
	"github.com/tollgate-dev/tollgate/gateway/dialects"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/money/charge"
	"github.com/tollgate-dev/tollgate/gateway/once"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// approvals is the store of approvals, with the alerts about new requests.
type approvals struct {
	*approval.Store
	*alerts.Alerts
}

// agent is how the gateway names itself to the platform.
func agent(version string) string { return "tollgate/" + version }

// compile turns a configuration into the state that the doors use.
func (g *Gateway) compile(cfg *settings.Config) (*state, error) {
	if err := errors.Join(cfg.Validate(), coverage.Check(slices.Concat(g.api.Operations(), g.runs.Operations()))); err != nil {
		return nil, err
	}
	client, err := platform.New(cfg)
	if err != nil {
		return nil, err
	}
	runs, err := platform.NewRuns(cfg, g.runs)
	if err != nil {
		return nil, err
	}
	engine, err := g.engines.New(cfg, g.engine())
	if err != nil {
		return nil, err
	}
	var before *dialects.Dialects
	if now := g.current.Load(); now != nil {
		before = now.legacy
	}
	legacy, err := dialects.New(cfg, g.dialects, before)
	if err != nil {
		return nil, err
	}
	pages, err := reference.Files()
	if err != nil {
		return nil, err
	}
	if description, ok := runs.Description(); ok {
		pages = append(pages, description)
	}
	table, err := dialects.Table(g.api, slices.Concat(localRoutes(pages), legacy.Routes(), runs.Routes()))
	if err != nil {
		return nil, err
	}
	callers, err := g.keys.Callers(cfg)
	if err != nil {
		return nil, err
	}
	recent, err := filter.NewRecent(g.deps.Now)
	if err != nil {
		return nil, err
	}
	refusing, err := charge.NewRefusing(g.deps.Now)
	if err != nil {
		return nil, err
	}
	asks := account.New(client, g.api, agent(g.deps.Version))
	reader := &filter.Reader{Upstream: client, Recorder: g.recorder, Agent: asks.Agent, Gets: asks.Gets, Health: g.runs.Operation("endpointHealth")}
	addresses := filter.Addresses{Public: platform.PublicRuns(cfg), Balanced: platform.PublicBalanced(cfg)}
	judge := &filter.Judge{
		Policies: engine, Reads: filter.ReadsOf(g.api), Template: g.api.Operation("getTemplate"), Templates: g.api.Operation("listTemplates"),
		Reader: reader, Recorder: g.recorder,
	}
	names := legacy.Names()
	priorities := filter.Priorities{Names: names, Urgency: legacy.Urgency()}
	chain := &filter.Chain{Help: filter.Help{Contact: cfg.Contact, Pages: cfg.DecisionPages()}}

	// The order of the pipeline. Cheap before dear, identity before quota,
	// quota before bodies; size before everything.
	chain.Head = []filter.Filter{
		filter.Stamp{},
		filter.Size{},
		filter.Match{Table: table, API: g.api, Run: g.runs},
		filter.Wire{},
		filter.Identify{Guard: g.guard, Keyless: cfg.Legacy.Keyless.Org},
		filter.Legacy{Names: names},
		filter.Admit{Priorities: priorities},
		filter.Count{Recorder: g.recorder},
		filter.Routed{API: g.api, Run: g.runs},
	}
	chain.Content = []filter.Filter{
		filter.Receive{Memory: g.bodies, Keyless: g.keyless},
		filter.Estimate{Run: g.questions.AnswerEstimate},
		filter.Local{Answers: g.localAnswers(pages)},
		filter.Decode{},
		filter.AdmitBody{Priorities: priorities},
		filter.Brownout{},
		&filter.Translate{API: g.api, Lists: g.lists},
	}
	chain.Call = []filter.Filter{
		filter.Count{Recorder: g.recorder},
		filter.OwnKeys{},
		filter.Labels{},
		filter.Pages{},
		once.Repeats{},
		&filter.Ownership{Reader: reader},
		judge,
		filter.Recount{Recorder: g.recorder},
		&charge.Reserve{Reader: reader, Workers: g.api.Operation("listEndpointWorkers"), Unresolved: g.started.Spend.Unresolved, Costs: g.money.Ledger.Costs, Refusing: refusing},
		filter.Audit{},
		filter.Rebuild{Agent: agent(g.deps.Version)},
		filter.Relay{Upstream: client, Run: runs.Client},
		charge.Measure{},
		addresses,
		once.Lookup{},
		filter.Share{},
	}
	ports := filter.Ports{
		Gate: g.gate, Background: &g.background, Counter: g.limiter, Shares: g.shares, Ledger: g.money.Ledger, Approvals: &grants.Grants{Store: approvals{g.approvals, g.alerts}}, Keeper: g.money.Keeper, Recent: recent, Prices: g.catalog, Usage: g.retired.Recorder, Observer: g.decisions,
		Translators: legacy.Translators(), Decisions: g.decisions.Recorder(), Audit: g.audit.Log, Leads: true,
		Intents: &once.Deduplicator{
			Desk: g.intents, Reader: reader, Account: asks, Addresses: addresses,
			Time: cfg.Timeouts.Lookup, Patience: cfg.Timeouts.Call + money.Answering, Unresolved: g.started.Spend.Unresolved,
		},
		Sender: &filter.Dispatcher{
			Upstream: client, Run: runs.Client, Balanced: runs.Balanced, Recorder: g.recorder, Deadline: cfg.Timeouts.Call,
			Streams: g.streams, WebSockets: g.webSockets, Lists: g.lists,
		},
	}
	admins, err := check.Admins(&cfg.Admin)
	if err != nil {
		return nil, err
	}
	return &state{
		View:     callers.View(cfg, legacy.Moves()),
		callers:  callers,
		pipeline: &filter.Pipeline{Chain: chain, Ports: ports, Callers: callers.Callers, Table: table, Balanced: cfg.BalancedDomain(), Upstream: client, Revision: cfg.Revision},
		reader:   reader,
		account:  asks,
		runs:     runs,
		engine:   engine,
		legacy:   legacy,
		admins:   admins.WithIssuers(cfg.Admin.Issuers, g.issuerKeys),
		loaded:   g.deps.Now(),
	}, nil
}
