package platform

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Size limits of the run interface, in bytes.
const (
	maxRun      = 10 << 20
	maxRunSync  = 20 << 20
	maxBalanced = 30 << 20
)

// maxExecution is the longest run of a job.
const maxExecution = 7 * 24 * time.Hour

// runRoutes is every operation of the run interface.
func runRoutes() []route {
	const base, post = "/v2/{id}", http.MethodPost
	return append(batchRoutes(), []route{
		changeRoute(post, base+"/run", "run", (*exchange).run),
		changeRoute(post, base+"/runsync", "runSync", (*exchange).runSync, "wait"),
		getRoute(base+"/status/{job}", "status", onJob((*exchange).jobStatusLocked), "ttl"),
		getRoute(base+"/status-sync/{job}", "statusSync", (*exchange).jobStatusSync, "wait"),
		getRoute(base+"/stream/{job}", "stream", onJob((*exchange).jobStreamLocked)),
		changeRoute(post, base+"/cancel/{job}", "cancel", onJob((*exchange).cancelJobLocked)),
		changeRoute(post, base+"/retry/{job}", "retry", onJob((*exchange).retryJobLocked)),
		changeRoute(post, base+"/purge-queue", "purgeQueue", onQueue((*exchange).purgeLocked)),
		getRoute(base+"/health", "health", onQueue((*exchange).healthLocked)),
		getRoute(base+"/requests", "requests", onQueue((*exchange).unfinishedLocked)),
		changeRoute(post, base+"/openai/v1/chat/completions", "chatCompletions", (*exchange).chatCompletions),
		changeRoute(post, base+"/openai/v1/completions", "completions", (*exchange).textCompletions),
		changeRoute(post, base+"/openai/v1/embeddings", "embeddings", (*exchange).embeddings),
		changeRoute(post, base+"/openai/v1/responses", "responses", (*exchange).responses),
		getRoute(base+"/openai/v1/models", "models", onQueue((*exchange).modelsLocked)),
		getRoute(base+"/openai/v1/models/{model}", "model", onQueue((*exchange).modelLocked)),
		getRoute(base+"/openai/v1/models/{owner}/{model}", "model", onQueue((*exchange).modelLocked)),
	}...)
}

// newRunSurface is the run interface's manners: no rate headers, errors as
// {"error": text}, keys with or without a scheme, far larger bodies.
func newRunSurface() *surface {
	return &surface{
		routes: newRouteTable(runRoutes()),
		limit: func(r *route) int64 {
			if r != nil && (r.operation == "run" || r.operation == "createBatch" || r.operation == "addBatchRequests") {
				return maxRun
			}
			return maxRunSync
		},
		problem:  runProblem,
		bareKeys: true,
	}
}

func runProblem(p *problem) (object, string) {
	o := object{"error", p.detail}
	if len(p.errors) > 0 {
		o = append(o, "detail", p.errors)
	}
	return o, "application/json"
}

// RunHandler is the run interface: /v2/<endpoint id>/run and what belongs to
// it, and load-balanced endpoints by the host <endpoint id>.<anything>.
func (s *Server) RunHandler() http.Handler {
	queue, balanced := newRunSurface(), newBalancedSurface()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Host, ".localhost") || s.balancedHost(r.Host) != "" {
			s.serve(balanced, w, r)
			return
		}
		s.serve(queue, w, r)
	})
}

// opRate counts the calls of one operation to one endpoint.
type opRate struct {
	start int64 // Unix seconds at which the running window began
	used  int
	open  int // calls that are being answered
}

// allowance is how many calls of an operation an endpoint takes per ten seconds
// and at once; zero is no limit.
func allowance(operation string) (calls, open int) {
	switch operation {
	case "runSync", "status", "stream", "chatCompletions", "completions", "embeddings", "responses":
		return 2000, 400
	case "run":
		return 1000, 200
	case "cancel":
		return 100, 20
	case "purgeQueue":
		return 2, 0
	case "requests":
		return 10, 2
	default:
		return 0, 0
	}
}

// enterLocked counts a call to an endpoint, nil for a public model's, which has no
// limits; leave must be called, under the lock, when it is answered.
func (x *exchange) enterLocked(e *endpoint) (leave func(), err error) {
	const width = 10
	calls, open := allowance(x.route.operation)
	if calls == 0 || e == nil {
		return func() {}, nil
	}
	if e.rates == nil {
		e.rates = map[string]*opRate{}
	}
	r := e.rates[x.route.operation]
	if r == nil {
		r = &opRate{}
		e.rates[x.route.operation] = r
	}
	if start := x.now.Unix() / width * width; start != r.start {
		r.start, r.used = start, 0
	}
	if r.used >= calls || open > 0 && r.open >= open {
		return nil, refuse(http.StatusTooManyRequests, "too many "+x.route.operation+" requests to this endpoint")
	}
	r.used++
	r.open++
	return func() { r.open-- }, nil
}

// queueLocked is the queue endpoint the path names.
func (x *exchange) queueLocked() (*endpoint, error) {
	e, err := x.acct.endpoints.own(x.params[0], "endpoint")
	if err == nil && e.Type != typeQueue {
		return nil, badRequest("not allowed for LB API")
	}
	return e, err
}

// onQueue is an operation on the queue endpoint that the path names, with the state in
// hand.
func onQueue(f func(x *exchange, e *endpoint) (reply, error)) handler {
	return locked(func(x *exchange) (reply, error) {
		e, err := x.queueLocked()
		if err != nil {
			return reply{}, err
		}
		leave, err := x.enterLocked(e)
		if err != nil {
			return reply{}, err
		}
		defer leave()
		return f(x, e)
	})
}

// openBody opens the body of a call, which may have any members. What is no object has none.
func (x *exchange) openBody() (fields, error) {
	body, err := x.decode()
	m, _ := body.(map[string]any)
	return fields{c: &checker{}, at: "$", m: m}, err
}

// jobRequest is the body of a job; times are milliseconds.
type jobRequest struct {
	Input  jobInput `body:"input" need:"yes" open:"yes"`
	Policy struct {
		ExecutionTimeout int64 `body:"executionTimeout" min:"5000" max:"604800000"`
		TTL              int64 `body:"ttl" min:"10000" max:"604800000"`
		LowPriority      bool  `body:"lowPriority"`
	} `body:"policy" open:"yes"`
	Webhook string `body:"webhook"`
}

// parseJob reads a job's body.
func (x *exchange) parseJob(sync bool) (*job, error) {
	f, err := x.openBody()
	if err != nil {
		return nil, err
	}
	if f.m == nil {
		return nil, badRequest("the request must be a JSON object with an input")
	}
	var r jobRequest
	if f.fill(&r); len(f.c.errs) > 0 {
		return nil, badRequest("the request is not a job", f.c.errs...)
	}
	j := &job{
		Sync: sync, Keep: keepAsync, Input: f.m["input"], Script: r.Input.Script, LowPriority: r.Policy.LowPriority,
		ExecTimeout: time.Duration(r.Policy.ExecutionTimeout) * time.Millisecond,
		Expires:     time.Time{}.Add(time.Duration(cmp.Or(r.Policy.TTL, 24*3600*1000)) * time.Millisecond), // relative until it is submitted
	}
	j.Calls, err = x.calls(j.Input)
	return j, err
}

// submitLocked puts a job into the queue.
func (x *exchange) submitLocked(e *endpoint, j *job) {
	x.identifyJobLocked(j)
	if j.ExecTimeout == 0 {
		j.ExecTimeout = e.execTimeout()
	}
	e.enqueue(j)
	x.s.scheduleLocked(x.acct, e, x.now)
}

// execTimeout is how long a job may run that does not say; an endpoint's 0 is the most
// that a job can ask for.
func (e *endpoint) execTimeout() time.Duration {
	if e.Timeout == 0 {
		return maxExecution
	}
	return time.Duration(max(e.Timeout, 1)) * time.Millisecond
}

func (x *exchange) identifyJobLocked(j *job) {
	a, b := x.s.rand.Uint64(), x.s.rand.Uint64()
	j.ID = fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x-u1", a>>32, a>>16&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff)
	if j.Sync {
		j.ID = "sync-" + j.ID
	}
	j.Status, j.Queued = jobQueued, x.now
	j.Expires = x.now.Add(j.Expires.Sub(time.Time{}))
}

// run queues a job and answers at once.
func (x *exchange) run() (reply, error) {
	j, err := x.parseJob(false)
	if err != nil {
		return reply{}, err
	}
	if m, isPublic := publicModel(x.params[0]); isPublic {
		return locked(func(x *exchange) (reply, error) { return x.runPublicLocked(m, j) })(x)
	}
	return onQueue(func(x *exchange, e *endpoint) (reply, error) {
		x.submitLocked(e, j)
		return inQueue(j), nil
	})(x)
}

func inQueue(j *job) reply { return ok(object{"id", j.ID, "status", jobQueued}) }

// waitParameter reads how long to wait for a result.
func (x *exchange) waitParameter() (wait time.Duration, given bool, err error) {
	if !x.query.Has("wait") {
		return 90 * time.Second, false, nil
	}
	ms, err := strconv.Atoi(x.query.Get("wait"))
	if err != nil || ms < 1000 || ms > 300_000 {
		return 0, true, badRequest("wait must be from 1000 to 300000 milliseconds")
	}
	return time.Duration(ms) * time.Millisecond, true, nil
}

// runSync queues a job and waits for its result.
func (x *exchange) runSync() (reply, error) {
	j, err := x.parseJob(true)
	if err != nil {
		return reply{}, err
	}
	wait, given, err := x.waitParameter()
	if err != nil {
		return reply{}, err
	}
	j.Keep = keepSync
	if given {
		j.Keep = max(keepSync, wait)
	}
	if m, isPublic := publicModel(x.params[0]); isPublic {
		return locked(func(x *exchange) (reply, error) {
			if _, err := x.runPublicLocked(m, j); err != nil {
				return reply{}, err
			}
			return x.awaitLocked(nil, j, x.now.Add(wait))
		})(x)
	}
	return onQueue(func(x *exchange, e *endpoint) (reply, error) {
		x.submitLocked(e, j)
		return x.awaitLocked(e, j, x.now.Add(wait))
	})(x)
}

// awaitLocked answers with the result of a job of an endpoint, nil for a public model's, or with
// what it is at the deadline. It gives the lock up while it waits.
func (x *exchange) awaitLocked(e *endpoint, j *job, deadline time.Time) (reply, error) {
	ctx, stop := x.untilClosed()
	defer stop()
	for {
		x.settlePublicLocked(j)
		if j.final() {
			status := http.StatusOK
			if _, isPublic := publicModel(x.params[0]); isPublic && j.Status == jobFailed {
				status = http.StatusBadRequest
			}
			return reply{status: status, body: j.record().append(nil)}, nil
		}
		if !x.now.Before(deadline) {
			return ok(j.brief()), nil
		}
		next := j.Ends
		if e != nil {
			next = e.NextAt
		}
		if x.waitLocked(ctx, next, deadline) != nil {
			return ok(j.brief()), nil // the caller has left
		}
	}
}

// waitLocked gives the lock up until the state may have changed: at next, which is zero if nothing is
// to come, at the deadline, or by another call. Its only error is the end of ctx.
func (x *exchange) waitLocked(ctx context.Context, next, deadline time.Time) error {
	if next.IsZero() {
		next = deadline
	}
	changed := x.s.changedLocked()
	x.unlock()
	defer x.lock()
	return x.s.clock.Wait(ctx, earliest(next, deadline), changed)
}

// CombinedHandler is the REST API and the run interface on one address: what
// is no path of the one is a path of the other.
func (s *Server) CombinedHandler() http.Handler {
	rest := map[string]bool{}
	for _, r := range restRoutes() {
		rest[strings.Split(r.pattern, "/")[2]] = true
	}
	run := s.RunHandler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		segments := strings.Split(r.URL.Path, "/")
		isRun := len(segments) > 3 && segments[1] == "v2" && !rest[segments[2]]
		if isRun || strings.Contains(r.Host, ".localhost") || s.balancedHost(r.Host) != "" {
			run.ServeHTTP(w, r)
			return
		}
		s.ServeHTTP(w, r)
	})
}
