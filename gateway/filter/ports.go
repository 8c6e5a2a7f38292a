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
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// Ports are the effects of the chain on the world outside it. Filters reach them
// through their Exchange and in no other way, so an exchange with other ports
// runs the same chain without effect: a dry run.
type Ports struct {
	// Gate bounds concurrent work; nil admits everything.
	Gate *overload.Gate
	// Counter counts calls against quotas.
	Counter Counter
	// Shares divides the platform account's own quota among teams.
	Shares Shares
	// Ledger keeps spending within budgets.
	Ledger Ledger
	// Intents keeps the calls that must not be made twice; nil takes every call for the first.
	Intents Intents
	// Approvals keeps requests for approval and grants.
	Approvals Approvals
	// Keeper leaves idle resources alone.
	Keeper *ledger.Snoozer
	// Background runs creates beside their requests, which they can outlive; it ends with the process.
	Background interface{ Go(f func()) }
	// Sender sends the judged request to the platform.
	Sender Sender
	// ReadCache holds recent reads from the platform.
	ReadCache *ReadCache
	// Prices returns price lists.
	Prices Prices
	// Translators serve the legacy dialects. Their memory is their own.
	Translators map[route.Dialect]Translator
	// Decisions logs the decisions of policies; nil logs none.
	Decisions Decisions
	// Usage counts legacy calls for the migration report; nil counts none.
	Usage *usage.Recorder
	// Audit records changes; nil records nothing.
	Audit *audit.Log
	// LeadsMayManage says that leads may change their team's keys and requests for approval.
	LeadsMayManage bool
	// Observer receives exchanges that have ended; nil for none.
	Observer Observer
}

// Counter is implemented by *ratelimit.Limiter.
type Counter interface {
	Take(ctx context.Context, t ratelimit.Take) (ratelimit.Decision, error)
}

// Shares is implemented by *ratelimit.Upstream.
type Shares interface {
	Admit(org, team string, weight int64) (ok bool, retryAfter time.Duration)
	Observe(org string, status int, h http.Header)
}

// Ledger is implemented by *spend.Ledger.
type Ledger interface {
	Reserve(ctx context.Context, org string, p *ledger.Plan, r ledger.Reservation) (ledger.Quote, error)
	Settle(ctx context.Context, org string, s *ledger.Settlement) error
	// Owners returns the owners of resources and then those of jobs, the zero Owner for
	// those that belong to the organisation or to nobody.
	Owners(ctx context.Context, org string, resources []string, jobs ...ledger.Job) ([]ledger.Owner, error)
	// CachedOwners returns the owners that this gateway remembers, the zero Owner for others, when the ledger cannot be asked.
	CachedOwners(org string, resources []string) []ledger.Owner
	// SetJobOwner remembers the owner of a job for a time.
	SetJobOwner(ctx context.Context, org string, j ledger.Job, o ledger.Owner, keep time.Duration) error
	// Observe makes the record of a sandbox agree with a record of the platform.
	Observe(ctx context.Context, org string, f *ledger.PlatformResource, ceiling int64) error
	// IsBalancedHost returns the accounts of an owner's scopes.
	Balances(ctx context.Context, org string, o ledger.Owner) ([]ledger.Balance, error)
}

// Intents is implemented by *once.Deduplicator. All methods but Enter are called for exchanges with Once only.
type Intents interface {
	// Enter begins the intent of a call that must not be made twice, and answers the repeat of a request with an
	// Idempotency-Key; "" is no key. It sets Once.
	Enter(ctx context.Context, ex *Exchange, key string) error
	// MayRepeat reports whether a call whose intent was not noted yet may be the repeat of another.
	MayRepeat(ctx context.Context, ex *Exchange) bool
	// Reserve notes the intent of a call, in one step with the reservation Money.Held if the call has one. It may answer
	// the exchange as the repeat of another; repeated reports this, and then err is the answer's refusal.
	Reserve(ctx context.Context, ex *Exchange) (q ledger.Quote, repeated bool, err error)
	// MaySend reports whether the call of an intent may still be made. Search looks for what a call has made whose answer was lost.
	MaySend(id string) bool
	Search(ctx context.Context, ex *Exchange) error
	// IntentUpdatecome ends the intent, in one step with a settlement, if there is one. Deliver ends the intent of a call that
	// awaits delivery.
	End(ctx context.Context, ex *Exchange, s *ledger.Settlement) error
	Deliver(ctx context.Context, ex *Exchange, d Delivery)
}

// Approvals is implemented by *grants.Grants.
type Approvals interface {
	// Approve takes the approval of a call, and returns the violations that it lifts. Without an approval it requests one, says
	// so on the refusal p, and returns nil.
	Approve(ctx context.Context, ex *Exchange, violations []policies.Violation, p *problem.Problem) []policies.Excepted
	// GiveBack makes the approval that a call has taken usable again if the call was not carried out.
	GiveBack(ctx context.Context, ex *Exchange)
}

// Sender sends the Out of an exchange and sets its Answer, or returns an error
// when no answer was received. It keeps Sent up to date. done releases the resources of a
// streaming answer; it is not nil unless err is, and must be called.
type Sender interface {
	Send(ctx context.Context, ex *Exchange) (done func(), err error)
}

// Prices is implemented by *catalog.Catalog.
type Prices interface {
	Snapshot(ctx context.Context, org string) (*catalog.Snapshot, error)
	// Charged compares the price of a pod that the platform has just created with the list.
	Charged(org string, pod map[string]any)
}

// Decisions is implemented by *decisionlog.Log.
type Decisions interface {
	Record(e decisionlog.Event)
}

// Observer receives each exchange once its answer is complete, before the
// answer is written. The v2 calls of a legacy exchange are its Calls; they are
// not reported on their own. The exchange must not be retained: any part kept of
// it is copied.
type Observer interface {
	Ended(ex *Exchange)
}

// Pipeline is one compiled configuration as the doors use it. It is immutable
// and taken once per exchange.
type Pipeline struct {
	Chain *Chain
	Ports Ports
	// Callers are who may call.
	Callers *Callers
	// Table knows the dialects of paths; nil takes all for v2.
	Table *route.Table
	// BalancedDomain is the suffix of the host names of load-balanced endpoints behind the
	// endpoint's id, ".lb.example.com"; "" has none.
	BalancedDomain string
	// Upstream has the credentials of organisations, for a door whose requests Envoy sends.
	Upstream *upstream.Client
	// Revision names the configuration.
	Revision string
}

// NewExchange begins the exchange of a request, with the pipeline's own ports.
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

// NewDryRun begins the exchange of a request that a caller might make, with other ports.
func (p *Pipeline) NewDryRun(in Inbound, ports *Ports, caller *identity.Caller) *Exchange {
	ex := p.NewExchange(in)
	ex.Ports, ex.Caller = ports, caller
	return ex
}

// path returns the path of a request. The host name of a load-balanced endpoint is
// another spelling of the path that leads there.
func (p *Pipeline) path(in *Inbound) string {
	id, named := p.endpoint(in.Host)
	if !named {
		return in.Path
	}
	if strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		id = "" // no endpoint has this name
	}
	return BalancedPath + id + in.Path
}

// IsBalancedHost reports whether a host is the name of a load-balanced endpoint, which all of its paths belong to.
func (p *Pipeline) IsBalancedHost(host string) bool {
	_, named := p.endpoint(host)
	return named
}

// endpoint returns the id of the load-balanced endpoint that a host names.
func (p *Pipeline) endpoint(host string) (id string, named bool) {
	host = strings.ToLower(host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	id, named = strings.CutSuffix(strings.TrimSuffix(host, "."), p.BalancedDomain)
	return id, named && p.BalancedDomain != ""
}

// BalancedPath is the path below which load-balanced endpoints are called, by their ids.
const BalancedPath = "/lb/"

// Run takes an exchange with its whole body through the chain and to the
// platform. The answer is complete when it returns, but for a stream:
// done releases that and the memory of the answer, and must be called when it is sent.
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
