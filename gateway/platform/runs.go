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

// Runs holds the clients of the run interface.
type Runs struct {
	api *schema.API
	// Client is the client for jobs and chat, or nil if the gateway does not serve the run interface. Balanced is the client for load-balanced
	// endpoints, or nil if the gateway does not serve them.
	Client, Balanced *upstream.Client
	batches          bool // whether batches are served
	paths            bool // whether model server paths named by organisations are served
}

// NewRuns returns Runs for a configuration. api is the description of the run interface.
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

// Close closes idle connections.
func (r Runs) Close() {
	for _, c := range []*upstream.Client{r.Client, r.Balanced} {
		if c != nil {
			c.Close()
		}
	}
}

// PublicRuns returns the URL at which callers reach the run interface. It returns "" if the gateway does not serve the run interface, or if
// its public URL is not configured.
func PublicRuns(c *settings.Config) string {
	if c.Platform.RunURL == "" {
		return ""
	}
	return strings.TrimSuffix(c.PublicURL, "/")
}

// PublicBalanced returns the URL at which callers reach a load-balanced endpoint. In the URL, {id} stands for the endpoint's ID.
// PublicBalanced returns "" if the gateway does not serve load-balanced endpoints, or if their public URL is not configured.
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

// Routes returns the routes of the v2 API, of the parts of the run interface that the gateway serves, and of the pages that describe both.
// Callers need no credential for these pages, or for operations that the gateway answers without calling the platform.
func Routes(api *schema.API, runs Runs) ([]filter.Served, error) {
	pages, err := reference.Files()
	if err != nil {
		return nil, err
	}
	var routes []filter.Served
	for _, op := range api.Operations() {
		row, _ := operation.Lookup(op.ID)
		one := filter.Serve(op.ID, op.Method, op.Path, nil)
		one.Public = row.Kind == operation.KindGateway
		if op.ID == "getOpenAPI" {
			header := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"max-age=300"}}
			one.Answer = filter.StaticResponse(header, api.Document)
		}
		routes = append(routes, one)
	}
	if own := runs.routes(); len(own) > 0 {
		routes, pages = append(routes, own...), append(pages, runs.description(own))
	}
	for _, f := range pages {
		page := filter.Serve("docs:"+f.Path, http.MethodGet, f.Path, filter.StaticResponse(f.Header, f.Body))
		page.Public = true
		routes = append(routes, page)
	}
	return routes, nil
}

// routes returns the routes of the parts of the run interface that the gateway serves.
func (r Runs) routes() (routes []filter.Served) {
	for _, op := range r.api.Operations() {
		this := route.Route{ID: op.ID, Dialect: route.Run, Method: op.Method, Pattern: op.Path}
		client := r.Client
		if op.Tag == modelsTag {
			this.Dialect = route.Chat
		}
		if row, _ := operation.Lookup(op.ID); row.Opaque {
			this.Method, this.Pattern, client = route.AnyMethod, filter.BalancedPath+"{id}/{path...}", r.Balanced
		}
		if client != nil && (r.batches || op.Tag != batchesTag) && (r.paths || op.ID != "modelCall") {
			routes = append(routes, filter.Served{Route: this})
		}
	}
	return routes
}

// description returns the API description of the parts of the run interface that the gateway serves.
func (r Runs) description(routes []filter.Served) reference.File {
	served := make(map[string]bool)
	for i := range routes {
		served[routes[i].ID] = true
	}
	header := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-cache"}}
	return reference.File{Path: reference.RunPath, Header: header, Body: sync.OnceValue(func() []byte { return r.api.Subset(served) })}
}

// modelsTag is the tag of operations for clients of language models. batchesTag is the tag of batch operations.
const (
	modelsTag  = "Language models"
	batchesTag = "Batches"
)
