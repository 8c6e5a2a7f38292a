package platform

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// balancedOperation is what records and faults call every call to a load-balanced
// endpoint.
const balancedOperation = "balanced"

// workerHeader names the worker that answered.
const workerHeader = "X-Platform-Worker-Id"

// balancedPatience is how long a load-balanced request waits for a worker.
const balancedPatience = 2 * time.Minute

// newBalancedSurface is the manners of load-balanced endpoints: every method
// and path is the worker's own affair.
func newBalancedSurface() *surface {
	all := &route{operation: balancedOperation, handle: (*exchange).balanced, body: true}
	return &surface{
		routes:   &routeTable{all: all},
		limit:    func(*route) int64 { return maxBalanced },
		problem:  runProblem,
		bareKeys: true,
		freeForm: true,
	}
}

// balancedHost is the endpoint a host name stands for, empty when its first
// label is no endpoint's id.
func (s *Server) balancedHost(host string) string {
	id, _, _ := strings.Cut(host, ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		if a.endpoints.has(id) {
			return id
		}
	}
	return ""
}

// balanced answers a request as the worker behind an endpoint would: with the result
// of the function that it carries, or else with the request itself.
func (x *exchange) balanced() (reply, error) {
	id, _, _ := strings.Cut(x.r.Host, ".")
	x.params = []string{id}
	x.lock()
	defer x.unlock()
	e, err := x.acct.endpoints.own(x.params[0], "endpoint")
	if err != nil {
		return reply{}, err
	}
	if e.Type != typeBalanced {
		return reply{}, badRequest("not allowed for QB API")
	}
	if x.r.URL.Path == cmp.Or(e.Container.Env["HEALTH_CHECK_PATH"], "/ping") {
		return x.ping(e), nil
	}
	e.InFlight++
	defer func() {
		e.InFlight--
		x.s.scheduleLocked(x.acct, e, x.now)
	}()
	x.s.scheduleLocked(x.acct, e, x.now)
	w, err := x.awaitWorkerLocked(e)
	if err != nil {
		return reply{}, err
	}
	w.IdleSince = x.now
	if strings.EqualFold(x.r.Header.Get("Upgrade"), "websocket") {
		return reply{status: http.StatusSwitchingProtocols, instead: x.echo}, nil
	}
	if input, calls, err := x.executes(); err != nil {
		return reply{}, err
	} else if calls {
		return x.executeLocked(input, e, w), nil
	}
	rep := ok(object{"method", x.r.Method, "path", x.r.URL.Path, "query", x.query.Encode(), "body", string(x.raw), "worker", w.ID})
	rep.header = http.Header{workerHeader: {w.ID}}
	return rep, nil
}

// maxMessage bounds a message of a WebSocket.
const maxMessage = 1 << 20

// echo is a worker's WebSocket: it sends each message back.
func (x *exchange) echo() error {
	conn, err := websocket.Accept(x.w, x.r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{"echo"}})
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxMessage)
	for {
		kind, message, err := conn.Read(x.s.life)
		if err == nil {
			err = conn.Write(x.s.life, kind, message)
		}
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ping is the health check: 200 with a worker, 204 while one comes up.
func (x *exchange) ping(e *endpoint) reply {
	for _, w := range e.Fleet {
		if w.Status == workerIdle {
			return ok(object{"status", "healthy"})
		}
	}
	return noContent()
}

// awaitWorkerLocked waits for a worker that is up. It gives the lock up while
// it waits.
func (x *exchange) awaitWorkerLocked(e *endpoint) (*worker, error) {
	ctx, stop := x.untilClosed()
	defer stop()
	deadline := x.now.Add(balancedPatience)
	for {
		for _, w := range e.Fleet {
			if w.Status == workerIdle {
				return w, nil
			}
		}
		if !x.now.Before(deadline) || e.Max == 0 {
			return nil, refuse(http.StatusServiceUnavailable, "no workers available")
		}
		if x.waitLocked(ctx, e.NextAt, deadline) != nil {
			return nil, refuse(http.StatusServiceUnavailable, "no workers available")
		}
	}
}
