package platform

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// route is one operation.
type route struct {
	method    string
	pattern   string
	operation string
	handle    handler
	query     []string // parameters it knows; those that may be repeated end in the constant repeated
	body      bool     // takes a body
	changes   bool     // needs a key that may change things
	open      bool     // needs no key
}

// repeated ends the name of a query parameter that may be given more than once.
const repeated = "..."

// surface is one set of routes with its own manners: the REST API or the run
// interface.
type surface struct {
	routes   *routeTable
	limit    func(*route) int64                        // body size; the route is nil when none matched
	problem  func(*problem) (body []byte, kind string) // how a refusal is told
	counts   bool                                      // counts against the account's windows
	bareKeys bool                                      // takes a key without its scheme
	freeForm bool                                      // bodies need not be JSON
}

// restRoutes is every operation of the REST API. Where two patterns could match
// one path, the literal one stands first.
func restRoutes() []route {
	get, post, put, del := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	about := []string{"source", "tail", "since"}
	return slices.Concat([]route{
		{method: get, pattern: "/v2/openapi.json", operation: "getOpenAPI", handle: (*exchange).getOpenAPI, open: true},

		{method: get, pattern: "/v2/account/ssh-keys", operation: "getSshKeys", handle: locked((*exchange).sshKeysLocked)},
		{method: put, pattern: "/v2/account/ssh-keys", operation: "updateSshKeys", handle: (*exchange).updateSSHKeys, body: true, changes: true},
	}, secrets().routes(), pods().routes(), []route{
		{method: get, pattern: "/v2/pods/{id}/logs", operation: "getPodLogs", handle: logs(pods(), (*exchange).podLogLocked), query: about},
		{method: post, pattern: "/v2/pods/{id}/action", operation: "podAction", handle: (*exchange).podAction, body: true, changes: true},
	}, clusters().routes(), []route{
		{method: get, pattern: "/v2/clusters/{id}/pods", operation: "listClusterPods", handle: clusters().on((*exchange).clusterPodsLocked)},
	}, endpoints().routes(), []route{
		{method: get, pattern: "/v2/serverless/{id}/workers", operation: "listEndpointWorkers", handle: endpoints().on((*exchange).workersLocked)},
		{method: get, pattern: "/v2/serverless/{id}/releases", operation: "listEndpointReleases", handle: endpoints().on((*exchange).releasesLocked), query: pageParameters()},
		{method: get, pattern: "/v2/serverless/{id}/workers/{workerId}/logs", operation: "getWorkerLogs", handle: logs(endpoints(), (*exchange).workerLogLocked), query: about},
		{method: get, pattern: "/v2/serverless/{id}/builds", operation: "listEndpointBuilds", handle: endpoints().on((*exchange).buildsLocked), query: pageParameters()},
		{method: get, pattern: "/v2/serverless/{id}/builds/{buildId}", operation: "getEndpointBuild", handle: endpoints().on((*exchange).buildLocked)},
	}, sandboxes().routes(), []route{
		{method: post, pattern: "/v2/sandboxes/{id}/exec", operation: "execSandbox", handle: (*exchange).execSandbox, body: true, changes: true},
		{method: get, pattern: "/v2/sandboxes/{id}/logs", operation: "getSandboxLogs", handle: logs(sandboxes(), (*exchange).sandboxLogLocked), query: about},
	}, templates().routes(), volumes().routes(), []route{
		{method: get, pattern: "/v2/registries/delegations", operation: "listDelegations", handle: delegations().listAll},
		{method: post, pattern: "/v2/registries/delegations", operation: "createDelegation", handle: delegations().createOne, body: true, changes: true},
		{method: del, pattern: "/v2/registries/delegations/{id}", operation: "revokeDelegation", handle: delegations().deleteOne, changes: true},
	}, registries().routes(), []route{
		{method: get, pattern: "/v2/catalog/gpus", operation: "listGpuTypes", handle: gpuTypes().listAll, query: gpuParameters()},
		{method: get, pattern: "/v2/catalog/gpus/{id}", operation: "getGpuType", handle: gpuTypes().getOne, query: gpuParameters()},
		{method: get, pattern: "/v2/catalog/cpus", operation: "listCpuTypes", handle: cpuTypes().listAll, query: []string{"include", "product", "vcpuCount"}},
		{method: get, pattern: "/v2/catalog/cpus/{id}", operation: "getCpuType", handle: cpuTypes().getOne, query: []string{"include", "product", "vcpuCount"}},
		{method: get, pattern: "/v2/catalog/datacenters", operation: "listDataCenters", handle: dataCenters().listAll, query: []string{"include", "regions", "networkVolumeTypes", "compliance", "globalNetwork"}},
		{method: get, pattern: "/v2/catalog/datacenters/{id}", operation: "getDataCenter", handle: dataCenters().getOne, query: []string{"include"}},
		{method: get, pattern: "/v2/catalog/templates", operation: "listPublicTemplates", handle: (*exchange).listPublicTemplates, query: []string{"source"}},
	}, billRoutes())
}

// Operations returns the operationId of every operation the emulator has on the
// REST API, in the order of its route list.
func Operations() []string {
	var ids []string
	for _, r := range restRoutes() {
		ids = append(ids, r.operation)
	}
	return ids
}

// routeTable finds routes segment by segment.
type routeTable struct {
	byLength map[int][]*pattern // patterns by number of segments, in list order
	all      *route             // takes every method and path; nil otherwise
}

// pattern is one path with its methods.
type pattern struct {
	segments []string // "" stands for a parameter
	methods  []*route
	allow    string
}

func newRouteTable(routes []route) *routeTable {
	t := &routeTable{byLength: map[int][]*pattern{}}
	known := map[string]*pattern{}
	for i := range routes {
		r := &routes[i]
		p := known[r.pattern]
		if p == nil {
			p = &pattern{segments: strings.Split(r.pattern[1:], "/")}
			for i, s := range p.segments {
				if strings.HasPrefix(s, "{") {
					p.segments[i] = ""
				}
			}
			known[r.pattern] = p
			t.byLength[len(p.segments)] = append(t.byLength[len(p.segments)], p)
		}
		p.methods = append(p.methods, r)
	}
	for _, p := range known {
		var methods []string
		for _, r := range p.methods {
			methods = append(methods, r.method)
		}
		slices.Sort(methods)
		p.allow = strings.Join(methods, ", ")
	}
	return t
}

// matched is what a path and method stand for: a route with the values of its
// parameters, or else the methods the path does have.
type matched struct {
	route  *route
	params []string
	allow  string
}

// match finds the operation of a request by its escaped path: segments are
// compared exactly and parameters unescaped one by one, so that an escaped
// slash cannot make one segment into two.
func (t *routeTable) match(r *http.Request) (matched, error) {
	if t.all != nil {
		return matched{route: t.all}, nil
	}
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for _, p := range t.byLength[len(segments)] {
		params, fits, err := p.fit(segments)
		if err != nil {
			return matched{}, badRequest("request could not be processed", "path: not a valid escape")
		}
		if !fits {
			continue
		}
		for _, route := range p.methods {
			if route.method == r.Method {
				return matched{route: route, params: params}, nil
			}
		}
		return matched{allow: p.allow}, nil
	}
	return matched{}, nil
}

func (p *pattern) fit(segments []string) (params []string, fits bool, err error) {
	for i, want := range p.segments {
		switch {
		case want != "" && want != segments[i], want == "" && segments[i] == "":
			return nil, false, nil
		case want == "":
			value, err := url.PathUnescape(segments[i])
			if err != nil {
				return nil, false, err
			}
			params = append(params, value)
		}
	}
	return params, true, nil
}
