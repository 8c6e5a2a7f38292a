package policyinput

import (
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Cost is the worst-case price of a call; see catalog.Cost.
type Cost = catalog.Cost

// Money is an amount in micro-USD; see catalog.Money.
type Money = catalog.Money

// Input is everything a policy may know about a call. The gateway fills it from values
// that it parsed itself; nothing of it is taken from a place the caller controls except
// Request and Resource.After.
//
// Bodies are decoded JSON: map[string]any, []any, string, bool, nil, json.Number, and
// Deferred for values that are decoded when a policy reads them. An Input and the values
// in it must not change while it is being decided on.
type Input struct {
	// Request is the call, in v2 terms.
	Request Request
	// Caller is its caller.
	Caller Caller
	// Resource is its subject.
	Resource Resource
	// Catalog is the organisation's price list; nil when there is none that may
	// be believed.
	Catalog *catalog.Snapshot
	// Cost is the worst case of the call.
	Cost Cost
	// Spend is the running and past spending.
	Spend Spend
	// Time is when the call is judged. The zero time is refused.
	Time time.Time
}

// Request is the call as the platform would get it.
type Request struct {
	// Operation is the operationId of the v2 API, or the operation of the run
	// interface (see package operation).
	Operation string
	// Method and Path are those of the v2 call, the path in canonical spelling.
	Method, Path string
	// Params are the path parameters by name, decoded.
	Params map[string]string
	// Query are the parsed query parameters.
	Query map[string]any
	// Body is the body with the platform's defaults filled in; nil for none.
	Body any
	// Unknown are the members that the caller's body has beside, and the gateway's
	// description of the API has not. They are sent.
	Unknown map[string]any
	// Labels are those of the call's new resource.
	Labels map[string]string
	// Dialect is the interface the caller spoke: v2, v1, graphql, run, or chat.
	Dialect string
}

// Caller is the caller.
type Caller struct {
	// Org, Team and Key identify the caller; Key is the public identifier of the
	// key, never the secret.
	Org, Team, Key string
	// Roles are the caller's roles: viewer, operator, admin, or an
	// organisation's own.
	Roles []string
}

// Resource is the subject of the call.
type Resource struct {
	// Current is the object as it is; nil for a create or when not read.
	Current any
	// After is the object as it would be: the body with its template merged in
	// for a create, the merged object for an update, the object for a start.
	// It is required for every operation whose Verb.HasAfter.
	After any
	// Template is the template the body names; nil for none.
	Template *Template
	// Owner is the object's maker, past or present; nil if it is not known.
	Owner *Owner
}

// Owner is the maker of a resource; both are "" for the organisation.
type Owner struct{ Team, Key string }

// Template is the gateway's knowledge of a template that a call names.
type Template struct {
	// ID is its id.
	ID string
	// Own tells that it is in the account's own list, Public that it is in the
	// public catalog.
	Own, Public bool
	// Record is the template as it was read.
	Record any
}

// Spend holds the present use of an organisation, a team and a key.
type Spend struct {
	// Known is false when the ledger could not be asked, when none is kept, and for
	// calls that change nothing; every amount is then meaningless.
	Known bool
	// Org, Team and Key are the three accounts the call falls under.
	Org, Team, Key Account
}

// Account is one line of the ledger.
type Account struct {
	// Burn is USD per hour of everything that runs or is reserved. The others are the USD spent in each current period, and
	// in total.
	Burn, Day, Week, Month, Quarter, Total Money
	// BurnLimit and the others are the budgets; nil means no limit.
	BurnLimit, DayLimit, WeekLimit, MonthLimit, QuarterLimit, TotalLimit *Money
	// GPUs, Pods, Workers, VolumeGB and Sandboxes count running resources and those that may run.
	GPUs, Pods, Workers, VolumeGB, Sandboxes int64
}

// ErrInput is wrapped by errors about an Input that cannot be judged.
var ErrInput = errors.New("unfit policy input")

// Document returns the input as policies see it. It finds the effect of the call, and
// checks that the members that policies rely on are there.
func (in *Input) Document() (*Document, error) {
	row, ok := operation.Lookup(in.Request.Operation)
	if !ok {
		return nil, fmt.Errorf("%w: unknown operation %q", ErrInput, in.Request.Operation)
	}
	verb := row.EffectiveVerb(in.Request.Body)
	if verb == "" {
		return nil, fmt.Errorf("%w: %s without a known action", ErrInput, in.Request.Operation)
	}
	if _, isObject := in.Resource.After.(map[string]any); verb.HasResultState() && !isObject {
		return nil, fmt.Errorf("%w: %s without the state after it", ErrInput, in.Request.Operation)
	}
	if in.Time.IsZero() {
		return nil, fmt.Errorf("%w: no time", ErrInput)
	}
	return &Document{in: in, kind: row.Kind, verb: verb}, nil
}
