package platform

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"
)

// endpoint is a serverless endpoint with its workers and jobs. Everything that
// happens by itself, such as a worker coming up or a job coming to its end, is
// an event at a known time; see fleet.go.
type endpoint struct {
	ID, Name      string
	Type          string // QUEUE or LOAD_BALANCER
	Container     container
	GPU           *endpointGPU // exactly one of GPU and CPU
	CPU           []podCPU
	Min, Max      int // workers
	IdleTimeout   int // seconds
	Scaling       scaling
	DataCenterIDs []string
	Volumes       []string
	Timeout       int64 // ms
	FlashBoot     string
	TemplateID    string // the account's own template it was made from
	CreatedAt     time.Time

	Version  int
	Releases []release // oldest first
	Builds   []*build  // oldest first

	Fleet     []*worker
	Active    []*job // queued and running, the oldest first
	Done      []*job // final, until their results are forgotten
	Completed int
	Failed    int
	Retried   int
	InFlight  int       // load-balanced requests that are being answered
	NextAt    time.Time // the next event; zero is none

	throttled bool // a worker waits for a machine
	jobs      map[string]*job
	rates     map[string]*opRate
	batches   []*batch
}

type endpointGPU struct {
	Pools, Excluded []string
	Count           int
	CUDA            []string
	MinCUDA         string // empty is none
}

// scaling is one of two ways to scale; its type says which.
type scaling struct {
	Type         string  `body:"type" need:"yes" enum:"QUEUE_DELAY REQUEST_COUNT"`
	QueueDelay   float64 `body:"queueDelay" min:"0.5"`
	RequestCount int64   `body:"requestCount" min:"1"`
}

func (s *scaling) check(f fields) {
	switch s.Type {
	case queueDelay:
		f.only("type", "queueDelay")
		f.require("queueDelay")
	case requestCount:
		f.only("type", "requestCount")
		f.require("requestCount")
	default:
		f.only("type", "queueDelay", "requestCount")
	}
}

const (
	typeQueue    = "QUEUE"
	typeBalanced = "LOAD_BALANCER"
	queueDelay   = "QUEUE_DELAY"
	requestCount = "REQUEST_COUNT"

	defaultIdle    = 10      // seconds
	defaultMax     = 3       // workers
	defaultTimeout = 300_000 // ms
	defaultQuota   = 30      // workers over all endpoints
)

// hidesIdle reports whether the idle timeout is meaningless here: it is neither
// taken nor shown.
func (e *endpoint) hidesIdle() bool {
	return e.Type == typeQueue && e.Scaling.Type == requestCount
}

func (x *exchange) showEndpoint(e *endpoint) object {
	workers := object{"min", e.Min, "max", e.Max}
	if !e.hidesIdle() {
		workers = append(workers, "idleTimeout", e.IdleTimeout)
	}
	scaling := object{"type", e.Scaling.Type, "requestCount", e.Scaling.RequestCount}
	if e.Scaling.Type == queueDelay {
		scaling = object{"type", e.Scaling.Type, "queueDelay", e.Scaling.QueueDelay}
	}
	o := append(object{"id", e.ID, "name", e.Name, "type", e.Type}, e.Container.members()...)
	o = append(append(o, "requestUrls", e.urls(x.runBase())), e.compute()...)
	return append(o, "workers", workers, "scaling", scaling, "dataCenterIds", e.DataCenterIDs, "networkVolumes", e.Volumes,
		"timeout", e.Timeout, "flashboot", e.FlashBoot, "createdAt", e.CreatedAt)
}

// compute is the gpu and cpu members.
func (e *endpoint) compute() object {
	if g := e.GPU; g != nil {
		o := object{"pools", g.Pools, "count", g.Count, "allowedCudaVersions", g.CUDA, "minCudaVersion", optional(g.MinCUDA)}
		if len(g.Excluded) > 0 {
			o = append(o, "excludedTypes", g.Excluded)
		}
		return object{"gpu", o}
	}
	return object{"gpu", nil, "cpu", objects(e.CPU, podCPU.record)}
}

// urls are where the endpoint is called.
func (e *endpoint) urls(runURL string) object {
	if e.Type == typeBalanced {
		base := balancedURL(runURL, e.ID)
		return object{"base", base, "health", base + cmp.Or(e.Container.Env["HEALTH_CHECK_PATH"], "/ping")}
	}
	base := runURL + "/v2/" + e.ID
	return object{
		"run", base + "/run", "runSync", base + "/runsync", "status", base + "/status/{job_id}", "stream", base + "/stream/{job_id}",
		"cancel", base + "/cancel/{job_id}", "retry", base + "/retry/{job_id}", "purgeQueue", base + "/purge-queue", "health", base + "/health",
	}
}

// runBase is the address of the run interface: the one in the options, or else
// the one that this call was made to, which its caller can reach again.
func (x *exchange) runBase() string {
	if x.s.runURL != "" {
		return x.s.runURL
	}
	return "http://" + x.r.Host
}

// balancedURL is the address of a load-balanced endpoint: a host of its own
// under the run interface's, or under localhost where that is an address.
func balancedURL(runURL, id string) string {
	u, err := url.Parse(runURL)
	if err != nil {
		return runURL
	}
	host := u.Host
	if strings.Trim(u.Hostname(), "0123456789.:") == "" {
		host = "localhost"
		if u.Port() != "" {
			host += ":" + u.Port()
		}
	}
	return u.Scheme + "://" + id + "." + host
}

// endpointRoutes is every operation on endpoints, their workers, releases and builds.
func endpointRoutes() []route {
	return append(endpoints().routes(),
		getRoute("/v2/serverless/{id}/workers", "listEndpointWorkers", endpoints().on((*exchange).workersLocked)),
		getRoute("/v2/serverless/{id}/releases", "listEndpointReleases", endpoints().on((*exchange).releasesLocked), pageParameters()...),
		getRoute("/v2/serverless/{id}/workers/{workerId}/logs", "getWorkerLogs", logs(endpoints(), (*exchange).workerLogLocked), logParameters()...),
		getRoute("/v2/serverless/{id}/builds", "listEndpointBuilds", endpoints().on((*exchange).buildsLocked), pageParameters()...),
		getRoute("/v2/serverless/{id}/builds/{buildId}", "getEndpointBuild", endpoints().on((*exchange).buildLocked)),
	)
}

func endpoints() resource[endpoint] {
	return resource[endpoint]{
		one: "Endpoint", many: "Endpoints", path: "/v2/serverless", member: "endpoints", noun: "endpoint", paged: true,
		table:  func(a *account) *table[endpoint] { return &a.endpoints },
		show:   (*exchange).showEndpoint,
		id:     func(e *endpoint) *string { return &e.ID },
		create: writes((*exchange).makeEndpointLocked),
		update: writes((*exchange).changeEndpointLocked),
		remove: func(x *exchange, e *endpoint) error {
			x.s.deleteEndpointLocked(x.acct, e, x.now)
			return nil
		},
	}
}

// deleteEndpointLocked ends the workers and cancels the jobs that are not final.
func (s *Server) deleteEndpointLocked(a *account, e *endpoint, now time.Time) {
	for _, j := range slices.Clone(e.Active) {
		e.end(j, jobCancelled, now)
	}
	for len(e.Fleet) > 0 {
		s.dismissLocked(e, e.Fleet[0])
	}
	a.endpoints.remove(e.ID)
	a.chargeLocked(meterServerless, e.ID, amounts{}, now)
	s.notifyLocked()
}
