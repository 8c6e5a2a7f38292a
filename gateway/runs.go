package gateway

import (
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// runs is the run interface as a configuration has it.
type runs struct {
	api *schema.API
	// client is nil when the interface is not served.
	client *upstream.Client
}

func (g *Gateway) newRuns(cfg *Config) (r runs, err error) {
	r.api = g.runs
	if cfg.Platform.RunURL != "" {
		r.client, err = upstream.New(cfg.runs(), cfg.credentials())
	}
	return r, err
}

// publicRuns is where callers reach the run interface; "" when it is not served, or
// the place is not known.
func (c *Config) publicRuns() string {
	if c.Platform.RunURL == "" {
		return ""
	}
	return strings.TrimSuffix(c.PublicURL, "/")
}

// routes lists the routes of the run interface, if it is served.
func (r runs) routes() []route.Route {
	if r.client == nil {
		return nil
	}
	var routes []route.Route
	for _, op := range r.api.Operations() {
		dialect := route.Run
		if op.Tag == modelsTag {
			dialect = route.Chat
		}
		routes = append(routes, route.Route{ID: op.ID, Dialect: dialect, Method: op.Method, Pattern: op.Path})
	}
	return routes
}

// modelsTag is the tag of the operations whose callers are clients of language
// models.
const modelsTag = "Language models"
