package platform

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// exchange is one request being answered. Handlers are its methods; the
// mutable state they reach through s needs s.mu, taken with lock.
type exchange struct {
	s       *Server
	w       http.ResponseWriter
	r       *http.Request
	surface *surface
	route   *route
	params  []string // values of the pattern's {…}, in order
	query   url.Values
	raw     []byte // body as received
	acct    *account
	access  Access
	now     time.Time // the emulator's time at the last lock
	call    *Call
	limit   string // RateLimit
	policy  string // RateLimit-Policy
	half    int    // status with which FaultHalf fails the second half of the operation; zero is none
}

// reply is an answer that is ready to be written.
type reply struct {
	status int
	body   []byte
	kind   string      // media type; empty is application/json
	header http.Header // further fields
	stream func() error
	// instead answers all by itself, with status.
	instead func() error
}

func ok(v any) reply { return reply{status: http.StatusOK, body: appendValue(nil, v)} }

func noContent() reply { return reply{status: http.StatusNoContent} }

// lock takes the state and brings the caller's account up to the present.
func (x *exchange) lock() {
	x.s.mu.Lock()
	x.now = x.s.clock.Now()
	if x.acct != nil {
		x.s.advanceLocked(x.acct, x.now)
	}
}

func (x *exchange) unlock() { x.s.release() }

// serve answers the request: match, size, authentication, quota, faults, then
// the operation itself.
func (x *exchange) serve() {
	found, matchFault := x.surface.routes.match(x.r)
	route, operation := found.route, ""
	x.route, x.params = route, found.params
	if route != nil {
		operation = route.operation
	}
	x.call = x.s.calls.begin(x.r, operation, x.s.clock.Now())

	raw, err := readBody(x.r, x.surface.limit(route))
	x.raw = raw
	x.s.calls.edit(x.call, func(c *Call) { c.Body = raw })
	if err == nil && (route == nil || !route.open) {
		err = x.identify()
	}
	if err == nil && route == nil {
		err = x.unmatched(found.allow, matchFault)
	}
	if err == nil {
		err = x.admit()
	}
	if err != nil {
		x.send(x.refusal(err))
		return
	}
	here := x.r.Context()
	if route.changes { // what was received is carried out, whether its caller waits or not
		here = context.WithoutCancel(here)
	}
	if !x.pass(here, x.s.faults.delay(operation)) {
		panic(http.ErrAbortHandler)
	}
	x.perform()
}

// perform runs the operation, with the fault that hits it, if one does.
func (x *exchange) perform() {
	account := ""
	if x.acct != nil {
		account = x.acct.ID
	}
	fault, hit := x.s.faults.pick(x.route.operation, account)
	var rep reply
	if fault.Kind == FaultHalf {
		x.half = cmp.Or(fault.Status, http.StatusInternalServerError)
	}
	if !hit || fault.needsAnswer() {
		var err error
		if rep, err = x.route.handle(x); err != nil {
			rep = x.refusal(err)
		}
	}
	if hit {
		x.misbehave(fault, rep)
		return
	}
	x.send(rep)
}

// readBody reads at most limit bytes and refuses longer bodies, whatever length
// they declare.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	large := tooLarge("the request body is larger than " + strconv.FormatInt(limit, 10) + " bytes")
	if r.ContentLength > limit {
		return nil, large
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	switch {
	case int64(len(body)) > limit:
		return body, large
	case err != nil:
		return body, badRequest("the request body could not be read")
	default:
		return body, nil
	}
}

// identify finds the account a Bearer key belongs to and counts the request.
func (x *exchange) identify() error {
	secret, fault := bearer(x.r.Header, x.surface.bareKeys)
	if fault != "" {
		return refuse(http.StatusUnauthorized, fault)
	}
	acct, access, known := x.s.account(secret)
	if !known || access == Disabled {
		return refuse(http.StatusUnauthorized, "invalid token")
	}
	x.acct, x.access = acct, access
	x.s.calls.edit(x.call, func(c *Call) { c.Account = acct.ID })
	if !x.surface.counts {
		return nil
	}
	x.lock()
	defer x.unlock()
	full := acct.takeLocked(x.now)
	x.limit, x.policy = acct.rateHeadersLocked(x.now)
	if full != nil {
		return full
	}
	return nil
}

// bearer returns the one API key of a request.
func bearer(h http.Header, bareKeys bool) (secret, fault string) {
	values := h.Values("Authorization")
	if len(values) == 0 {
		return "", "missing bearer token"
	}
	scheme, token, found := strings.Cut(values[0], " ")
	switch {
	case len(values) > 1:
		return "", "more than one authorization"
	case !found && bareKeys:
		return scheme, ""
	case !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(token) == "":
		return "", "malformed bearer token"
	default:
		return strings.TrimSpace(token), ""
	}
}

// unmatched is the answer to a request that is no operation.
func (x *exchange) unmatched(allow string, fault error) error {
	x.s.calls.noteUnknown(x.r.Method, x.r.URL.EscapedPath())
	if fault != nil {
		return fault
	}
	if allow == "" {
		return notFound("resource")
	}
	return &problem{
		status: http.StatusMethodNotAllowed,
		detail: "The requested method is not allowed for this path.",
		allow:  allow,
	}
}

// admit checks what the key may do and how the request is put.
func (x *exchange) admit() error {
	if x.access == NoAccess || x.access == ReadOnly && x.route.changes {
		return refuse(http.StatusForbidden, "access denied")
	}
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return badRequest(unreadable, "query: not a valid query string")
	}
	x.query = query
	if !x.s.opts.Strict || x.surface.freeForm {
		return nil
	}
	return x.admitStrictly()
}

func (x *exchange) admitStrictly() error {
	for name, values := range x.query {
		repeatable := slices.Contains(x.route.query, name+repeated)
		if !repeatable && !slices.Contains(x.route.query, name) {
			return badRequest(unreadable, "query."+name+": no such parameter")
		}
		if len(values) > 1 && !repeatable {
			return badRequest(unreadable, "query."+name+": given more than once")
		}
	}
	if len(x.raw) == 0 {
		return nil
	}
	if !x.route.body {
		return badRequest(unreadable, "$: this operation takes no body")
	}
	media, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return badRequest(unreadable, "Content-Type: must be application/json")
	}
	return x.described()
}

// described refuses a body that the published description does not have, where it is
// JSON: what is not, its operation refuses.
func (x *exchange) described() error {
	if _, err := x.decode(); err != nil {
		return nil //nolint:nilerr // see above
	}
	if faults := PublishedFaults(x.route.operation, x.raw); faults != nil {
		return invalid(faults...)
	}
	return nil
}

// decode reads the body as one JSON value.
func (x *exchange) decode() (any, error) { return decode(x.raw) }

// sleep waits for d of real time; false when the client leaves first.
func (x *exchange) sleep(d time.Duration) bool { return x.pass(x.r.Context(), d) }

// pass waits for d of real time; false when ctx or the emulator ends first.
func (x *exchange) pass(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-x.s.life.Done():
		return false
	}
}

// untilClosed is the context of an answer that goes on and on: it ends when the
// client leaves or the emulator is closed. The caller must call stop.
func (x *exchange) untilClosed() (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(x.r.Context())
	release := context.AfterFunc(x.s.life, cancel)
	return ctx, func() { release(); cancel() }
}

// refusal turns an error into the surface's way of telling it.
func (x *exchange) refusal(err error) reply {
	p, known := errors.AsType[*problem](err)
	if !known {
		x.s.log.Error("emulator fault", "error", err)
		p = refuse(http.StatusInternalServerError, "internal error")
	}
	rep := reply{status: p.status, header: http.Header{}}
	if p.allow != "" {
		rep.header.Set("Allow", p.allow)
	}
	if p.retryAfter > 0 {
		rep.header.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.status == http.StatusUnauthorized {
		rep.header.Set("Www-Authenticate", "Bearer")
	}
	body, kind := x.surface.problem(p)
	rep.body, rep.kind = body.append(nil), kind
	return rep
}

// status writes the status line, dated by the emulator's clock, and remembers it.
func (x *exchange) status(code int) {
	x.s.calls.edit(x.call, func(c *Call) { c.Status = code })
	x.w.Header().Set("Date", x.s.clock.Now().Format(http.TimeFormat))
	x.w.WriteHeader(code)
}

// head writes everything of rep but its body.
func (x *exchange) head(rep reply) {
	h := x.w.Header()
	maps.Copy(h, rep.header)
	if x.limit != "" {
		h["Ratelimit"] = []string{x.limit}
		h["Ratelimit-Policy"] = []string{x.policy}
	}
	if rep.status != http.StatusNoContent && rep.stream == nil {
		h["Content-Type"] = []string{cmp.Or(rep.kind, "application/json")}
		h["Content-Length"] = []string{strconv.Itoa(len(rep.body))}
	}
	x.status(rep.status)
}

// send writes the whole answer.
func (x *exchange) send(rep reply) {
	if rep.instead != nil {
		x.s.calls.edit(x.call, func(c *Call) { c.Status = rep.status })
		if err := rep.instead(); err != nil {
			x.s.log.Debug("connection ended", "error", err)
		}
		return
	}
	x.head(rep)
	if rep.stream == nil {
		_, _ = x.w.Write(rep.body) // the client may be gone
		return
	}
	if err := rep.stream(); err != nil {
		x.s.log.Debug("stream ended", "error", err)
	}
}
