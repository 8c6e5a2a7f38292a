package platform

import (
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

type scaling struct {
	Type         string // QUEUE_DELAY or REQUEST_COUNT
	QueueDelay   float64
	RequestCount int64
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

func (e *endpoint) append(b []byte, runURL string) []byte {
	b = appendText(append(b, `{"id":`...), e.ID)
	b = appendText(append(b, `,"name":`...), e.Name)
	b = appendText(append(b, `,"type":`...), e.Type)
	b = e.Container.appendMembers(append(b, ','))
	b = e.appendURLs(append(b, `,"requestUrls":`...), runURL)
	b = e.appendCompute(b)
	b = appendInt(append(b, `,"workers":{"min":`...), e.Min)
	b = appendInt(append(b, `,"max":`...), e.Max)
	if !e.hidesIdle() {
		b = appendInt(append(b, `,"idleTimeout":`...), e.IdleTimeout)
	}
	b = appendText(append(b, `},"scaling":{"type":`...), e.Scaling.Type)
	if e.Scaling.Type == queueDelay {
		b = appendNumber(append(b, `,"queueDelay":`...), e.Scaling.QueueDelay)
	} else {
		b = appendInt(append(b, `,"requestCount":`...), e.Scaling.RequestCount)
	}
	b = appendTexts(append(b, `},"dataCenterIds":`...), e.DataCenterIDs)
	b = appendTexts(append(b, `,"networkVolumes":`...), e.Volumes)
	b = appendInt(append(b, `,"timeout":`...), e.Timeout)
	b = appendText(append(b, `,"flashboot":`...), e.FlashBoot)
	return append(appendTime(append(b, `,"createdAt":`...), e.CreatedAt), '}')
}

func (e *endpoint) appendCompute(b []byte) []byte {
	if g := e.GPU; g != nil {
		b = appendTexts(append(b, `,"gpu":{"pools":`...), g.Pools)
		if len(g.Excluded) > 0 {
			b = appendTexts(append(b, `,"excludedTypes":`...), g.Excluded)
		}
		b = appendInt(append(b, `,"count":`...), g.Count)
		b = appendTexts(append(b, `,"allowedCudaVersions":`...), g.CUDA)
		return append(appendTextOrNull(append(b, `,"minCudaVersion":`...), g.MinCUDA), '}')
	}
	return appendArray(append(b, `,"gpu":null,"cpu":`...), e.CPU, func(b []byte, c podCPU) []byte { return c.append(b) })
}

// appendURLs writes where the endpoint is called.
func (e *endpoint) appendURLs(b []byte, runURL string) []byte {
	if e.Type == typeBalanced {
		base := balancedURL(runURL, e.ID)
		b = appendText(append(b, `{"base":`...), base)
		return append(appendText(append(b, `,"health":`...), base+orText(e.Container.Env["HEALTH_CHECK_PATH"], "/ping")), '}')
	}
	base := runURL + "/v2/" + e.ID
	for i, one := range [][2]string{
		{"run", "/run"},
		{"runSync", "/runsync"},
		{"status", "/status/{job_id}"},
		{"stream", "/stream/{job_id}"},
		{"cancel", "/cancel/{job_id}"},
		{"retry", "/retry/{job_id}"},
		{"purgeQueue", "/purge-queue"},
		{"health", "/health"},
	} {
		if i == 0 {
			b = append(b, '{')
		} else {
			b = append(b, ',')
		}
		b = append(appendText(b, one[0]), ':')
		b = appendText(b, base+one[1])
	}
	return append(b, '}')
}

// runBase is the address of the run interface: the one in the options, or else
// the one that this call was made to, which its caller can reach again.
func (x *exchange) runBase() string {
	if x.s.runURL != "" {
		return x.s.runURL
	}
	return "http://" + x.host
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

func endpoints() resource[endpoint] {
	return resource[endpoint]{
		one: "Endpoint", many: "Endpoints", path: "/v2/serverless", member: "endpoints", paged: func(e *endpoint) string { return e.ID },
		table:    func(a *account) *table[endpoint] { return &a.endpoints },
		append:   func(x *exchange, b []byte, e *endpoint) []byte { return e.append(b, x.runBase()) },
		identify: func(e *endpoint, id string) { e.ID = id },
		create:   writes(endpointNames("type"), readNewEndpoint, (*exchange).makeEndpointLocked),
		update:   writes(endpointNames(), func(f fields) *endpointRequest { return f.endpoint(true) }, (*exchange).changeEndpointLocked),
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
