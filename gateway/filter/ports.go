package filter

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Ports contains the interfaces through which filters cause side effects. Filters cause side effects only through the Ports of their
// Exchange, so the same chain can perform a dry run with other Ports.
type Ports struct {
	// Gate limits concurrent work; nil admits everything.
	Gate *overload.Gate
	// Counter counts calls against quotas.
	Counter Counter
	// Shares divides the quota of the platform account among teams.
	Shares Shares
	// Ledger keeps spending within budgets.
	Ledger Ledger
	// Intents deduplicates calls that must not be carried out twice; nil treats every call as the first.
	Intents Intents
	// Approvals stores requests for approval and grants.
	Approvals Approvals
	// Snoozer snoozes resources: it exempts them from idle handling until a date, at their owner's request.
	Snoozer *ledger.Snoozer
	// Background runs a function that creates a resource and may outlive its request. It ends with the process.
	Background func(create func())
	// Sender sends the checked call to the platform.
	Sender Sender
	// ReadCache caches recent reads from the platform.
	ReadCache *ReadCache
	// Prices returns price lists.
	Prices Prices
	// Translators serve the legacy dialects. They keep their own state.
	Translators map[route.Dialect]Translator
	// Decisions is the decision log; nil logs nothing.
	Decisions Decisions
	// Audit records changes; nil records nothing.
	Audit *audit.Log
	// LeadsMayManage permits leads to manage the keys of their team and its requests for approval.
	LeadsMayManage bool
	// Observer receives completed exchanges; it may be nil.
	Observer Observer
}

// Counter counts calls against quotas, for RateLimit. It is implemented by *ratelimit.Limiter.
type Counter interface {
	Take(ctx context.Context, t ratelimit.Take) (ratelimit.Decision, error)
}

// Shares divides the platform's quota among teams, for FairShare. It is implemented by *ratelimit.Upstream.
type Shares interface {
	Admit(org, team string, weight int64) (ok bool, retryAfter time.Duration)
	Observe(org string, status int, h http.Header)
}

// Ledger reserves and settles the cost of calls, for the stages of package money, and returns the owners of resources, for CheckOwnership.
// It is implemented by *ledger.Ledger.
type Ledger interface {
	Reserve(ctx context.Context, org string, p *ledger.Plan, r ledger.Reservation) (ledger.Quote, error)
	Settle(ctx context.Context, org string, s *ledger.Settlement) error
	// Owners returns the owners of the resources followed by the owners of the jobs. The Owner is zero for resources that belong to the
	// organisation, and for unknown resources and jobs.
	Owners(ctx context.Context, org string, resources []string, jobs ...ledger.Job) ([]ledger.Owner, error)
	// CachedOwners returns the owners that this gateway remembers, for use while the ledger is unavailable. The Owner of an unknown resource
	// is zero.
	CachedOwners(org string, resources []string) []ledger.Owner
	// SetJobOwner stores the owner of a job for the given time.
	SetJobOwner(ctx context.Context, org string, j ledger.Job, o ledger.Owner, keep time.Duration) error
	// Observe updates the ledger's record of a sandbox from a record of the platform.
	Observe(ctx context.Context, org string, f *ledger.PlatformResource, ceiling int64) error
	// Balances returns the balances of the key, team and organisation of an owner.
	Balances(ctx context.Context, org string, o ledger.Owner) ([]ledger.Balance, error)
}

// Intents deduplicates calls, for the stages of packages idempotency and money. It is implemented by *idempotency.Deduplicator. Except for
// Enter, its methods are called only for exchanges with Idempotency set.
type Intents interface {
	// Enter starts the deduplication of a call and sets ex.Idempotency. If the request repeats another one with the same idempotency key,
	// it sets the response or returns an error. key is "" for requests without a key.
	Enter(ctx context.Context, ex *Exchange, key string) error
	// MayRepeat reports whether a call whose intent is not recorded yet may be a repeat.
	MayRepeat(ctx context.Context, ex *Exchange) bool
	// Reserve records the intent of a call, atomically with the reservation in ex.Cost if there is one. If the call turns out to be a repeat,
	// repeated is true; then either the exchange has a response or err is the refusal.
	Reserve(ctx context.Context, ex *Exchange) (q ledger.Quote, repeated bool, err error)
	// MaySend reports whether the call of an intent may still be sent. Search looks for the resource of a call whose response was lost.
	MaySend(id string) bool
	Search(ctx context.Context, ex *Exchange) error
	// End ends the intent, atomically with the settlement if s is not nil. d is DeliveryPending until the response has been sent. A create
	// needs another End after that, which does not wait for the store and cannot fail.
	End(ctx context.Context, ex *Exchange, s *ledger.Settlement, d Delivery) error
}

// Approvals finds and uses approvals of denied calls, and requests new ones. It is implemented by *grants.Grants.
type Approvals interface {
	// Approve uses the approval of a call and returns the violations that it permits. Without an approval, it requests one, adds the
	// request to the refusal p, and returns nil.
	Approve(ctx context.Context, ex *Exchange, violations []policies.Violation, p *problem.Problem) []policies.Excepted
	// GiveBack makes the approval usable again if the call was not carried out.
	GiveBack(ctx context.Context, ex *Exchange)
}

// Sender sends ex.Out and sets the response, or returns an error if no response was received. It updates ex.Sent. If err is nil, done is
// not nil and must be called to release the resources of a streaming response.
type Sender interface {
	Send(ctx context.Context, ex *Exchange) (done func(), err error)
}

// Prices provides price lists, for EvaluatePolicies and the stages of package money. It is implemented by *catalog.Catalog.
type Prices interface {
	Snapshot(ctx context.Context, org string) (*catalog.Snapshot, error)
	// ObserveCharge compares the price of a newly created pod with the price list.
	ObserveCharge(org string, pod map[string]any)
}

// Decisions records the events of completed exchanges. It is implemented by *decisionlog.Log.
type Decisions interface {
	Record(e decisionlog.Event)
}

// Observer receives each exchange when its response is complete, before the response is written. The v2 calls of a legacy exchange are in
// its Calls and are not reported separately. An Observer must not retain the exchange, and must copy the parts that it keeps.
type Observer interface {
	Ended(ex *Exchange)
}

// Pipeline is a compiled configuration. It is immutable. An exchange uses the same Pipeline from beginning to end.
type Pipeline struct {
	Chain *Chain
	Ports Ports
	// Callers contains the directory of callers.
	Callers *Callers
	// Table determines the dialect of a path; nil treats all paths as v2.
	Table *route.Table
	// BalancedDomain is the domain of load-balanced endpoints with a leading dot, such as ".lb.example.com". The host name of an endpoint is
	// its ID followed by BalancedDomain. "" disables such host names.
	BalancedDomain string
	// Upstream provides the organisations' credentials to the ext_proc server, which does not send requests itself.
	Upstream *upstream.Client
	// Revision identifies the configuration.
	Revision string
}

// NewExchange returns a new exchange for a request, with the pipeline's ports.
func (p *Pipeline) NewExchange(in Inbound) *Exchange {
	in.Path = p.path(&in)
	dialect := p.Table.Dialect(in.Path)
	ex := newExchange(stagesOfRequest)
	ex.In, ex.Dialect, ex.Ports, ex.pipeline = in, dialect, &p.Ports, p
	*ex.Event = telemetry.Event{
		Start: in.Received, Revision: p.Revision, Door: in.Door, Dialect: string(dialect), Method: methodLabel(in.Method),
		Operation: unmatched, Peer: in.Peer, Agent: in.Header.Get("User-Agent"), BytesIn: int64(len(in.Body)),
	}
	return ex
}

// NewDryRun returns a new exchange for a hypothetical request of caller, with the given ports.
func (p *Pipeline) NewDryRun(in Inbound, ports *Ports, caller *identity.Caller) *Exchange {
	ex := p.NewExchange(in)
	ex.Ports, ex.Caller = ports, caller
	return ex
}

// path returns the path of a request. For the host name of a load-balanced endpoint, it is the equivalent path under BalancedPath.
func (p *Pipeline) path(in *Inbound) string {
	id, named := p.endpoint(in.Host)
	if !named {
		return in.Path
	}
	if strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		id = "" // no endpoint has such a name
	}
	return BalancedPath + id + in.Path
}

// IsBalancedHost reports whether host is the name of a load-balanced endpoint. All paths of such a host belong to the endpoint.
func (p *Pipeline) IsBalancedHost(host string) bool {
	_, named := p.endpoint(host)
	return named
}

// endpoint returns the ID of the load-balanced endpoint in a host name.
func (p *Pipeline) endpoint(host string) (id string, named bool) {
	host = strings.ToLower(host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	id, named = strings.CutSuffix(strings.TrimSuffix(host, "."), p.BalancedDomain)
	return id, named && p.BalancedDomain != ""
}

// BalancedPath is the path prefix of load-balanced endpoints, followed by the endpoint's ID.
const BalancedPath = "/lb/"

// Run runs the whole chain: RunHeaders, RunBody, Dispatch, RunResponse and Deliver, with the status Delivered. ex.In must have the whole
// body in Body, or a Source from which the body can be read. When Run returns, the response is complete unless it is a stream. done must be
// called after the response has been sent; it releases the stream and the memory of the response.
func (p *Pipeline) Run(ctx context.Context, ex *Exchange) (done func()) {
	leave := func() {}
	if p.Chain.RunHeaders(ctx, ex) && p.Chain.RunBody(ctx, ex) {
		leave = p.Chain.Dispatch(ctx, ex)
	}
	p.Chain.RunResponse(ctx, ex)
	ex.Deliver(ctx, Delivered)
	if ex.Translation.lists == nil {
		return leave
	}
	return func() { leave(); ex.ReleaseMemory() }
}
