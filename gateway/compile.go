package gateway

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/account"
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/approval/grants"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/check"
	"github.com/tollgate-dev/tollgate/gateway/coverage"
	"github.com/tollgate-dev/tollgate/gateway/dialects"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/money/charge"
	"github.com/tollgate-dev/tollgate/gateway/once"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies"
)

// agent is how the gateway names itself to the platform.
func agent(version string) string { return "tollgate/" + version }

// compiled is what features make the stages of a configuration of.
type compiled struct {
	cfg       *settings.Config
	client    *upstream.Client
	runs      platform.Runs
	engine    *policies.Engine
	legacy    *dialects.Dialects
	answers   map[string]filter.Responder
	table     *route.Table
	account   *account.Client
	reader    *filter.Reader
	addresses filter.Addresses
	refusing  *charge.Refusing
	chain     *filter.Chain
}

// compile turns a configuration into the state that the doors use.
func (g *Gateway) compile(cfg *settings.Config) (*state, error) {
	if err := errors.Join(cfg.Validate(), coverage.Check(slices.Concat(g.api.Operations(), g.runs.Operations()))); err != nil {
		return nil, err
	}
	c, err := g.compiled(cfg)
	if err != nil {
		return nil, err
	}
	if err := arrange(g.features, c); err != nil {
		return nil, err
	}
	callers, err := g.keys.Callers(cfg)
	if err != nil {
		return nil, err
	}
	admins, err := check.Admins(&cfg.Admin)
	if err != nil {
		return nil, err
	}
	pipeline, err := g.newPipeline(c, callers)
	if err != nil {
		return nil, err
	}
	v := callers.View(cfg, c.legacy.Moves())
	v.Loaded = g.deps.Now()
	return &state{
		View:     v,
		callers:  callers,
		pipeline: pipeline,
		reader:   c.reader,
		account:  c.account,
		runs:     c.runs,
		engine:   c.engine,
		legacy:   c.legacy,
		admins:   admins.WithIssuers(cfg.Admin.Issuers, g.issuerKeys).Over(tenants.List(cfg)),
	}, nil
}

// compiled compiles what the stages of several features have in common.
func (g *Gateway) compiled(cfg *settings.Config) (c *compiled, err error) {
	c = &compiled{cfg: cfg, chain: &filter.Chain{Help: filter.Help{Contact: cfg.Contact, Pages: cfg.DecisionPages()}}}
	if c.client, err = platform.New(cfg); err != nil {
		return nil, err
	}
	if c.runs, err = platform.NewRuns(cfg, g.runs); err != nil {
		return nil, err
	}
	if c.engine, err = g.engines.New(cfg, g.current.engine()); err != nil {
		return nil, err
	}
	var before *dialects.Dialects
	if now := g.current.Load(); now != nil {
		before = now.legacy
	}
	if c.legacy, err = dialects.New(cfg, g.dialects, before); err != nil {
		return nil, err
	}
	if c.refusing, err = charge.NewRefusing(g.deps.Now); err != nil {
		return nil, err
	}
	if err := g.addRoutes(c); err != nil {
		return nil, err
	}
	c.account = account.New(c.client, g.api, agent(g.deps.Version))
	c.reader = &filter.Reader{Upstream: c.client, Recorder: g.recorder, Agent: c.account.Agent, Gets: c.account.Gets, Health: g.runs.Operation("endpointHealth")}
	c.addresses = filter.Addresses{Public: platform.PublicRuns(cfg), Balanced: platform.PublicBalanced(cfg)}
	return c, nil
}

// addRoutes adds the table of all routes, and the answers to the routes that features answer themselves. The reference has a page for the routes of
// the run interface that the configuration has.
func (g *Gateway) addRoutes(c *compiled) error {
	pages, err := reference.Files()
	if err != nil {
		return err
	}
	if description, ok := c.runs.Description(); ok {
		pages = append(pages, description)
	}
	routes := slices.Concat(c.legacy.Routes(), c.runs.Routes())
	c.answers = make(map[string]filter.Responder)
	for _, f := range pages {
		id := "docs:" + f.Path
		routes = append(routes, route.Route{ID: id, Dialect: route.V2, Method: http.MethodGet, Pattern: f.Path, Public: true})
		c.answers[id] = filter.Document(f.Header, f.Body)
	}
	for i := range g.features {
		routes = append(routes, g.features[i].routes...)
		maps.Copy(c.answers, g.features[i].answers)
	}
	c.table, err = dialects.Table(g.api, routes)
	return err
}

// newPipeline puts the chain of a configuration together with the effects of its stages.
func (g *Gateway) newPipeline(c *compiled, callers *callers.Callers) (*filter.Pipeline, error) {
	recent, err := filter.NewRecent(g.deps.Now)
	if err != nil {
		return nil, err
	}
	ports := filter.Ports{
		Gate: g.gate, Background: g.background, Counter: g.counts.Limiter, Shares: g.counts.Shares, Ledger: g.money.Ledger, Approvals: &grants.Grants{Store: approvals{g.approvals, g.alerts}}, Keeper: g.money.Keeper, Recent: recent, Prices: g.catalog, Usage: g.retired.Recorder, Observer: g.decisions,
		Translators: c.legacy.Translators(), Decisions: g.decisions.Recorder(), Audit: g.audit.Log, Leads: true,
		Intents: &once.Deduplicator{
			Desk: g.intents, Reader: c.reader, Account: c.account, Addresses: c.addresses,
			Time: c.cfg.Timeouts.Lookup, Patience: c.cfg.Timeouts.Call + money.Answering, Unresolved: g.current.started.Spend.Unresolved,
		},
		Sender: &filter.Dispatcher{
			Upstream: c.client, Run: c.runs.Client, Balanced: c.runs.Balanced, Recorder: g.recorder, Deadline: c.cfg.Timeouts.Call,
			Streams: g.streams, WebSockets: g.room.WebSockets, Lists: g.room.Lists,
		},
	}
	return &filter.Pipeline{
		Chain: c.chain, Ports: ports, Callers: callers.Callers, Table: c.table, Balanced: c.cfg.BalancedDomain(),
		Upstream: c.client, Revision: c.cfg.Revision,
	}, nil
}

// approvals is the store of approvals, with the alerts about new requests.
type approvals struct {
	*approval.Store
	*alerts.Alerts
}
