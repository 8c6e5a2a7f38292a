package gateway

import (
	"errors"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/account"
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
	"github.com/tollgate-dev/tollgate/gateway/tenants"
)

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
	finder := once.Finder{Reader: reader, Account: asks, Time: cfg.Timeouts.Lookup, Patience: cfg.Timeouts.Call + money.Answering, Unresolved: g.started.Spend.Unresolved}
	addresses := filter.Addresses{Public: platform.PublicRuns(cfg), Balanced: platform.PublicBalanced(cfg)}
	made := &once.Repeats{Finder: finder, Addresses: addresses}
	approvals := &grants.Grants{Repeats: made.Repeats, Requested: g.alerts.ApprovalRequested}
	judge := &filter.Judge{
		Policies: engine, Reads: filter.ReadsOf(g.api), Template: g.api.Operation("getTemplate"), Templates: g.api.Operation("listTemplates"),
		Reader: reader, Recorder: g.recorder, Approvals: approvals,
	}
	count := &filter.Count{Recorder: g.recorder}
	names := legacy.Names()
	admit := filter.Admit{Names: names, Urgency: legacy.Urgency()}
	chain := &filter.Chain{Help: filter.Help{Contact: cfg.Contact, Pages: cfg.DecisionPages()}}

	// The order of the pipeline. Cheap before dear, identity before quota,
	// quota before bodies; size before everything.
	chain.Head = []filter.Filter{
		filter.Stamp{},
		filter.Size{},
		filter.Match{Table: table, API: g.api, Run: g.runs},
		filter.Wire{},
		filter.Identify{Guard: g.guard, Keyless: cfg.Legacy.Keyless.Org},
		&filter.Legacy{Names: names, Now: g.deps.Now},
		admit,
		count,
		filter.Routed{API: g.api, Run: g.runs},
	}
	chain.Content = []filter.Filter{
		filter.Size{Memory: g.bodies, Keyless: g.keyless},
		filter.Estimate{Run: g.questions.AnswerEstimate},
		filter.Local{Answers: g.localAnswers(pages)},
		filter.Decode{},
		filter.Admit{Names: names, Urgency: admit.Urgency, Body: true},
		&filter.Brownout{Now: g.deps.Now},
		&filter.Translate{API: g.api, Chain: chain, Go: g.background.Go, Tell: charge.Tell, Lists: g.lists, Told: made.Told, Untold: made.Untold},
	}
	chain.Call = []filter.Filter{
		count,
		filter.OwnKeys{},
		filter.Labels{},
		filter.Pages{},
		made,
		&filter.Ownership{Reader: reader},
		judge,
		filter.Recount{Count: count},
		&charge.Reserve{Repeats: made, Approvals: approvals, Reader: reader, Workers: g.api.Operation("listEndpointWorkers"), Unresolved: g.started.Spend.Unresolved, Costs: g.money.Ledger.Costs, Refusing: refusing},
		filter.Audit{},
		filter.Rebuild{Agent: agent(g.deps.Version)},
		filter.Relay{Upstream: client, Run: runs.Client},
		charge.Measure{},
		addresses,
		&once.Lookup{Finder: finder, Now: g.deps.Now},
		filter.Share{},
	}
	ports := filter.Ports{
		Gate: g.gate, Counter: g.limiter, Shares: g.shares, Ledger: g.money.Ledger, Intents: g.intents, Approvals: g.approvals, Keeper: g.money.Keeper, Recent: recent, Prices: g.catalog, Usage: g.retired.Recorder, Observer: g.decisions,
		Translators: legacy.Translators(),
		Sender: &filter.Dispatcher{
			Upstream: client, Run: runs.Client, Balanced: runs.Balanced, Recorder: g.recorder, Deadline: cfg.Timeouts.Call,
			Streams: g.streams, WebSockets: g.webSockets, Lists: g.lists,
		},
	}
	ports.Leads = true
	ports.Decisions = g.decisions.Recorder()
	if g.audit.Log != nil {
		ports.Audit = g.audit.Log
	}
	admins, err := check.Admins(&cfg.Admin)
	if err != nil {
		return nil, err
	}
	v := callers.View(cfg, legacy.Moves())
	v.Loaded = g.deps.Now()
	return &state{
		View:     v,
		callers:  callers,
		pipeline: &filter.Pipeline{Chain: chain, Ports: ports, Callers: callers.Callers, Table: table, Balanced: cfg.BalancedDomain(), Authorization: client.Authorization, Credential: client.Credential, Revision: cfg.Revision},
		reader:   reader,
		account:  asks,
		runs:     runs,
		engine:   engine,
		legacy:   legacy,
		admins:   admins.WithIssuers(cfg.Admin.Issuers, g.issuerKeys).Over(tenants.List(cfg)),
	}, nil
}
