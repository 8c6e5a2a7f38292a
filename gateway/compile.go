package gateway

import (
	"errors"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/platform"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// compiled is a state under construction. The compile functions of the features complete it.
type compiled struct {
	*state
	cfg       *settings.Config
	addresses filter.RewriteAddresses
	answers   map[string]filter.Responder
}

// compile converts a configuration to the state with which the listeners serve requests.
func (g *Gateway) compile(cfg *settings.Config) (*state, error) {
	if err := errors.Join(cfg.Validate(), operator.Check(slices.Concat(g.api.Operations(), g.runs.Operations()))); err != nil {
		return nil, err
	}
	c := &compiled{cfg: cfg, state: &state{pipeline: &filter.Pipeline{
		Chain:          &filter.Chain{Help: filter.Help{Contact: cfg.Contact, Pages: cfg.DecisionPages()}},
		BalancedDomain: cfg.BalancedDomain(), Revision: cfg.Revision,
	}}}
	for i := range g.features {
		if add := g.features[i].compile; add != nil {
			if err := add(c); err != nil {
				return nil, err
			}
		}
	}
	if len(c.pipeline.Ports.Translators) == 0 {
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
	c.View = c.callers.View(cfg)
	c.Loaded = g.deps.Now()
	return c.state, nil
}

// addRoutes sets the table of all routes, and the responders of the routes that the gateway serves itself.
func (g *Gateway) addRoutes(c *compiled) error {
	routes, err := platform.Routes(g.api, c.runs)
	if err != nil {
		return err
	}
	for i := range g.features {
		if own := g.features[i].routes; own != nil {
			routes = append(routes, own()...)
		}
	}
	c.pipeline.Table, c.answers, err = filter.NewTable(routes)
	return err
}
