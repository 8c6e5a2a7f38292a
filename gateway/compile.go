package gateway

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies"
)

// compiled collects the contributions of features to a configuration. Each field is set by the compile function of one feature.
type compiled struct {
	cfg       *settings.Config
	account   *upstream.Account
	runs      platform.Runs
	reader    *filter.Reader
	addresses filter.RewriteAddresses
	refusing  *money.StreamOptions
	callers   *callers.Callers
	admins    *admin.Directory
	engine    *policies.Engine
	ports     filter.Ports

	answers map[string]filter.Responder
	table   *route.Table
	chain   *filter.Chain
}

// compile converts a configuration to the state used by the doors.
func (g *Gateway) compile(cfg *settings.Config) (*state, error) {
	if err := errors.Join(cfg.Validate(), operator.Check(slices.Concat(g.api.Operations(), g.runs.Operations()))); err != nil {
		return nil, err
	}
	c := &compiled{cfg: cfg, chain: &filter.Chain{Help: filter.Help{Contact: cfg.Contact, Pages: cfg.DecisionPages()}}}
	for i := range g.features {
		if add := g.features[i].compile; add != nil {
			if err := add(c); err != nil {
				return nil, err
			}
		}
	}
	if len(c.ports.Translators) == 0 {
		if err := cfg.WithoutLegacy(); err != nil {
			return nil, err
		}
	}
	if err := g.addRoutes(c); err != nil {
		return nil, err
	}
	if err := arrange(g.features, c); err != nil {
		return nil, err
	}
	v := c.callers.View(cfg)
	v.Loaded = g.deps.Now()
	return &state{
		View: v, callers: c.callers, reader: c.reader, account: c.account, runs: c.runs, engine: c.engine, admins: c.admins,
		pipeline: &filter.Pipeline{
			Chain: c.chain, Ports: c.ports, Callers: c.callers.Callers, Table: c.table, BalancedDomain: cfg.BalancedDomain(),
			Upstream: c.account.Upstream, Revision: cfg.Revision,
		},
	}, nil
}

// addRoutes sets the table of all routes and the responders of routes that features serve themselves. Pages of the API reference include
// the run interface only if it is configured.
func (g *Gateway) addRoutes(c *compiled) error {
	pages, err := reference.Files()
	if err != nil {
		return err
	}
	if description, ok := c.runs.Description(); ok {
		pages = append(pages, description)
	}
	routes := slices.Concat(platform.Routes(g.api), c.runs.Routes())
	c.answers = make(map[string]filter.Responder)
	for _, f := range pages {
		id := "docs:" + f.Path
		routes = append(routes, route.Route{ID: id, Dialect: route.V2, Method: http.MethodGet, Pattern: f.Path, Public: true})
		c.answers[id] = filter.StaticResponse(f.Header, f.Body)
	}
	for i := range g.features {
		if own := g.features[i].routes; own != nil {
			routes = append(routes, own()...)
		}
		if own := g.features[i].answers; own != nil {
			maps.Copy(c.answers, own())
		}
	}
	if c.table, err = route.NewTable(routes); err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	return nil
}
