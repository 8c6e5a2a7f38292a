package platform

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// FaultKind is a way in which the platform can misbehave.
type FaultKind string

// The ways to misbehave. Those that need an answer to begin with (FaultCut,
// FaultMalformed, FaultHuge, FaultBomb, FaultSlow, FaultTrickle, FaultHalf) carry the operation
// out; the others do so only when Fault.After is set.
const (
	FaultCapacity  FaultKind = "capacity"  // 400 with nothing but a detail, 503 for createSandbox
	FaultBalance   FaultKind = "balance"   // 402
	FaultForbidden FaultKind = "forbidden" // 403
	FaultRateLimit FaultKind = "ratelimit" // 429 with Retry-After
	FaultStatus    FaultKind = "status"    // Fault.Status as a problem document
	FaultSlow      FaultKind = "slow"      // the answer comes after Fault.Delay
	FaultTrickle   FaultKind = "trickle"   // the answer comes byte by byte, Fault.Delay apart
	FaultDrop      FaultKind = "drop"      // the connection closes without an answer
	FaultCut       FaultKind = "cut"       // the connection closes in mid-body
	FaultHang      FaultKind = "hang"      // no answer until the client leaves
	FaultMalformed FaultKind = "malformed" // 200 with a body that is not JSON
	FaultHuge      FaultKind = "huge"      // 200 with a valid JSON body of 64 MiB
	FaultHalf      FaultKind = "half"      // updateSecret sets the value, and fails with Fault.Status before the description
	FaultBomb      FaultKind = "bomb"      // a small gzip body that expands to 64 MiB
)

// Fault makes the emulator misbehave on purpose.
type Fault struct {
	// ID names the fault on the control interface; AddFault gives one.
	ID string `json:"id,omitempty"`
	// Operation is the operationId it applies to; empty is every operation.
	Operation string `json:"operation,omitempty"`
	// Account is the account id it applies to; empty is every account.
	Account string `json:"account,omitempty"`
	// Kind is what happens.
	Kind FaultKind `json:"kind"`
	// Probability is how likely a matching call is hit; zero means always.
	Probability float64 `json:"probability,omitempty"`
	// Times is how many calls are hit before the fault is spent; zero is no end.
	Times int `json:"times,omitempty"`
	// After carries the operation out before the fault: the ambiguous case,
	// where the caller cannot know that its pod now exists.
	After bool `json:"after,omitempty"`
	// Status is the answer's status for FaultStatus and FaultHalf; zero is 500.
	Status int `json:"status,omitempty"`
	// Detail replaces the detail of the problem document.
	Detail string `json:"detail,omitempty"`
	// RetryAfter is the Retry-After of FaultRateLimit in seconds; zero is 1.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Delay is the real time FaultSlow and FaultTrickle take, in nanoseconds on
	// the control interface; zero is a second, for FaultTrickle a millisecond.
	Delay time.Duration `json:"delay,omitempty"`
	// Body replaces the text of FaultMalformed.
	Body string `json:"body,omitempty"`
}

// Validate reports every field that makes no sense.
func (f Fault) Validate() error {
	var faults []error
	if _, known := manners[f.Kind]; !known {
		faults = append(faults, fmt.Errorf("kind: no fault is called %q", f.Kind))
	}
	if err := checkOperation(f.Operation); err != nil {
		faults = append(faults, fmt.Errorf("operation: %w", err))
	}
	if f.Kind == FaultHalf && f.Operation != "updateSecret" {
		faults = append(faults, errors.New("operation: only updateSecret has two halves"))
	}
	if f.Probability < 0 || f.Probability > 1 {
		faults = append(faults, fmt.Errorf("probability: %v is not between 0 and 1", f.Probability))
	}
	if f.Times < 0 || f.RetryAfter < 0 || f.Delay < 0 {
		faults = append(faults, errors.New("times, retryAfter and delay: must not be negative"))
	}
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		faults = append(faults, fmt.Errorf("status: %d is not between 200 and 599", f.Status))
	}
	return errors.Join(faults...)
}

// checkOperation refuses names that no operation of the REST API or the run
// interface has; empty stands for all.
func checkOperation(id string) error {
	has := func(r route) bool { return r.operation == id }
	if id == "" || id == balancedOperation || slices.ContainsFunc(restRoutes(), has) || slices.ContainsFunc(runRoutes(), has) {
		return nil
	}
	return fmt.Errorf("no operation is called %q", id)
}

// manner is what a kind of fault does.
type manner struct {
	// status and detail describe the error response that replaces the response of the operation. They are zero for other faults.
	status int
	detail string
	// answers reports whether the fault needs the operation's own answer, which misbehave then changes.
	answers   bool
	misbehave func(x *exchange, f Fault, rep reply)
}

// manners are the kinds of fault.
var manners = map[FaultKind]manner{
	FaultCapacity:  {status: http.StatusBadRequest, detail: noCapacity},
	FaultBalance:   {status: http.StatusPaymentRequired, detail: "insufficient balance"},
	FaultForbidden: {status: http.StatusForbidden, detail: "access denied"},
	FaultRateLimit: {status: http.StatusTooManyRequests, detail: "rate limit exceeded for the minute window"},
	FaultStatus:    {status: http.StatusInternalServerError, detail: "the emulator was told to fail"},
	FaultSlow:      {answers: true, misbehave: (*exchange).delay},
	FaultHalf:      {answers: true, misbehave: func(x *exchange, _ Fault, rep reply) { x.send(rep) }},
	FaultTrickle:   {answers: true, misbehave: (*exchange).trickle},
	FaultCut:       {answers: true, misbehave: (*exchange).cut},
	FaultMalformed: {answers: true, misbehave: (*exchange).malform},
	FaultHuge:      {answers: true, misbehave: (*exchange).huge},
	FaultBomb:      {answers: true, misbehave: (*exchange).bomb},
	FaultDrop:      {misbehave: func(*exchange, Fault, reply) { panic(http.ErrAbortHandler) }},
	FaultHang:      {misbehave: (*exchange).hang},
}

// needsAnswer reports whether the fault needs the operation's own answer.
func (f Fault) needsAnswer() bool { return f.After || manners[f.Kind].answers }

// refusal is the answer of the faults that are an answer of their own.
func (f Fault) refusal(operation string) *problem {
	p := refuse(manners[f.Kind].status, cmp.Or(f.Detail, manners[f.Kind].detail))
	switch f.Kind { //nolint:exhaustive // the row of the fault says the rest
	case FaultCapacity:
		if operation == "createSandbox" {
			p.status = http.StatusServiceUnavailable
		}
	case FaultRateLimit:
		p.retryAfter = max(f.RetryAfter, 1)
	case FaultStatus:
		p.status = cmp.Or(f.Status, p.status)
	}
	return p
}

// faults holds the faults in force and the chance they are drawn by.
type faults struct {
	mu      sync.Mutex
	rand    *rand.Rand
	next    int
	list    []*Fault
	latency map[string]time.Duration // by operation, "" is every other
}

func newFaults(o Options) *faults {
	f := &faults{}
	f.resetLocked(o)
	return f
}

// resetLocked brings back what a new emulator of these options has. Ids of faults
// go on, so that none stands for two.
func (f *faults) resetLocked(o Options) {
	f.rand = rand.New(rand.NewPCG(o.Seed, 2))
	f.list = nil
	f.latency = map[string]time.Duration{"": 0}
}

// pick returns the first fault that hits a call, and spends one of its times.
func (f *faults) pick(operation, account string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, fault := range f.list {
		if fault.Operation != "" && fault.Operation != operation || fault.Account != "" && fault.Account != account {
			continue
		}
		if fault.Probability > 0 && f.rand.Float64() >= fault.Probability {
			continue
		}
		hit := *fault
		if fault.Times == 1 {
			f.list = slices.Delete(f.list, i, i+1)
		} else if fault.Times > 1 {
			fault.Times--
		}
		return hit, true
	}
	return Fault{}, false
}

func (f *faults) delay(operation string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d, ok := f.latency[operation]; ok {
		return d
	}
	return f.latency[""]
}

// AddFault puts a fault in force and returns its id. Faults are tried in the
// order they were added; the first that hits is the only one. It panics on a
// fault that does not pass Validate, or names an account that does not exist.
func (s *Server) AddFault(f Fault) string {
	added, err := s.addFault(f)
	if err != nil {
		panic("platform: AddFault: " + err.Error())
	}
	return added.ID
}

func (s *Server) addFault(f Fault) (Fault, error) {
	err := f.Validate()
	if f.Account != "" && s.accounts[f.Account] == nil {
		err = errors.Join(err, fmt.Errorf("account: no account is called %q", f.Account))
	}
	if err != nil {
		return f, err
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.next++
	f.ID = fmt.Sprintf("fault-%d", s.faults.next)
	s.faults.list = append(s.faults.list, new(f))
	return f, nil
}

// RemoveFault lifts one fault and reports whether it was in force.
func (s *Server) RemoveFault(id string) bool {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	before := len(s.faults.list)
	s.faults.list = slices.DeleteFunc(s.faults.list, func(f *Fault) bool { return f.ID == id })
	return len(s.faults.list) < before
}

// ClearFaults lifts every fault.
func (s *Server) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = nil
}

// Faults returns the faults in force, Times being what is left of each.
func (s *Server) Faults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	out := make([]Fault, len(s.faults.list))
	for i, f := range s.faults.list {
		out[i] = *f
	}
	return out
}

// SetLatency delays the answers of one operation, or with an empty operation of
// all that have no latency of their own, by d of real time. It panics on an
// operation that does not exist.
func (s *Server) SetLatency(operation string, d time.Duration) {
	if err := checkOperation(operation); err != nil {
		panic("platform: SetLatency: " + err.Error())
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.latency[operation] = max(d, 0)
}

// Latency returns the delays in force by operation; "" is every other one.
func (s *Server) Latency() map[string]time.Duration {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return maps.Clone(s.faults.latency)
}
