package gateway

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// runs is the run interface as a configuration has it.
type runs struct {
	api *schema.API
	// client is nil when the interface is not served, balanced when load-balanced
	// endpoints are not.
	client, balanced *upstream.Client
	batches          bool // are served
	paths            bool // of model servers are served that organisations name
}

func (g *Gateway) newRuns(cfg *settings.Config) (r runs, err error) {
	r.api, r.batches = g.runs, cfg.Run.Batches
	r.paths = slices.ContainsFunc(cfg.Orgs, func(o settings.Org) bool { return len(o.ModelPaths) > 0 })
	if cfg.Platform.RunURL != "" {
		if r.client, err = upstream.New(runsOf(cfg), runCredentials(cfg)); err != nil {
			return r, err
		}
	}
	if cfg.Platform.BalancedURL != "" {
		r.balanced, err = upstream.New(balancedOf(cfg), runCredentials(cfg))
	}
	return r, err
}

// close drops idle connections.
func (r runs) close() {
	for _, c := range []*upstream.Client{r.client, r.balanced} {
		if c != nil {
			c.Close()
		}
	}
}

// publicRuns is where callers reach the run interface; "" when it is not served, or
// the place is not known.
func publicRuns(c *settings.Config) string {
	if c.Platform.RunURL == "" {
		return ""
	}
	return strings.TrimSuffix(c.PublicURL, "/")
}

// publicBalanced is where callers reach a load-balanced endpoint, with {id} for its
// id; "" when these are not served, or the place is not known.
func publicBalanced(c *settings.Config) string {
	switch {
	case c.Platform.BalancedURL == "":
		return ""
	case c.PublicBalancedURL != "":
		return strings.TrimSuffix(c.PublicBalancedURL, "/")
	case c.PublicURL != "":
		return strings.TrimSuffix(c.PublicURL, "/") + filter.BalancedPath + "{id}"
	}
	return ""
}

// routes lists the routes of the run interface, as far as it is served.
func (r runs) routes() []route.Route {
	var routes []route.Route
	for _, op := range r.api.Operations() {
		this := route.Route{ID: op.ID, Dialect: route.Run, Method: op.Method, Pattern: op.Path}
		client := r.client
		if op.Tag == modelsTag {
			this.Dialect = route.Chat
		}
		if row, _ := operation.Of(op.ID); row.Opaque {
			this.Method, this.Pattern, client = route.AnyMethod, filter.BalancedPath+"{id}/{path...}", r.balanced
		}
		if client != nil && (r.batches || op.Tag != batchesTag) && (r.paths || op.ID != "modelCall") {
			routes = append(routes, this)
		}
	}
	return routes
}

// description is that of the run interface, as far as it is served, for the reference;
// ok is false where none of it is.
func (r runs) description() (file reference.File, ok bool) {
	served := make(map[string]bool)
	for _, route := range r.routes() {
		served[route.ID] = true
	}
	header := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-cache"}}
	return reference.File{Path: reference.RunPath, Header: header, Body: sync.OnceValue(func() []byte { return r.api.Part(served) })}, len(served) > 0
}

// modelsTag is the tag of the operations whose callers are clients of language
// models, batchesTag that of the operations on batches.
const (
	modelsTag  = "Language models"
	batchesTag = "Batches"
)
