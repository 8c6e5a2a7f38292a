package platform

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

// Runs is the run interface as a configuration has it.
type Runs struct {
	api *schema.API
	// Client is nil when the interface is not served, Balanced when load-balanced
	// endpoints are not.
	Client, Balanced *upstream.Client
	batches          bool // are served
	paths            bool // of model servers are served that organisations name
}

// NewRuns makes the clients of a configuration, given the description.
func NewRuns(cfg *settings.Config, api *schema.API) (r Runs, err error) {
	r.api, r.batches = api, cfg.Run.Batches
	r.paths = slices.ContainsFunc(cfg.Orgs, func(o settings.Org) bool { return len(o.ModelPaths) > 0 })
	if cfg.Platform.RunURL != "" {
		if r.Client, err = upstream.New(runsOf(cfg), runCredentials(cfg)); err != nil {
			return r, err
		}
	}
	if cfg.Platform.BalancedURL != "" {
		r.Balanced, err = upstream.New(balancedOf(cfg), runCredentials(cfg))
	}
	return r, err
}

// Close drops idle connections.
func (r Runs) Close() {
	for _, c := range []*upstream.Client{r.Client, r.Balanced} {
		if c != nil {
			c.Close()
		}
	}
}

// PublicRuns is where callers reach the run interface; "" when it is not served, or
// the place is not known.
func PublicRuns(c *settings.Config) string {
	if c.Platform.RunURL == "" {
		return ""
	}
	return strings.TrimSuffix(c.PublicURL, "/")
}

// PublicBalanced is where callers reach a load-balanced endpoint, with {id} for its
// id; "" when these are not served, or the place is not known.
func PublicBalanced(c *settings.Config) string {
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

// Routes lists the routes of the run interface, as far as it is served.
func (r Runs) Routes() []route.Route {
	var routes []route.Route
	for _, op := range r.api.Operations() {
		this := route.Route{ID: op.ID, Dialect: route.Run, Method: op.Method, Pattern: op.Path}
		client := r.Client
		if op.Tag == modelsTag {
			this.Dialect = route.Chat
		}
		if row, _ := operation.Of(op.ID); row.Opaque {
			this.Method, this.Pattern, client = route.AnyMethod, filter.BalancedPath+"{id}/{path...}", r.Balanced
		}
		if client != nil && (r.batches || op.Tag != batchesTag) && (r.paths || op.ID != "modelCall") {
			routes = append(routes, this)
		}
	}
	return routes
}

// Description is that of the run interface, as far as it is served, for the reference;
// ok is false where none of it is.
func (r Runs) Description() (file reference.File, ok bool) {
	served := make(map[string]bool)
	for _, route := range r.Routes() {
		served[route.ID] = true
	}
	header := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-cache"}}
	return reference.File{Path: reference.RunPath, Header: header, Body: sync.OnceValue(func() []byte { return r.api.Subset(served) })}, len(served) > 0
}

// modelsTag is the tag of the operations whose callers are clients of language
// models, batchesTag that of the operations on batches.
const (
	modelsTag  = "Language models"
	batchesTag = "Batches"
)
