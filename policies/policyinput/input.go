package policyinput

import (
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Cost is the highest price of a call; see catalog.Cost.
type Cost = catalog.Cost

// Money is an amount in micro-USD; see catalog.Money.
type Money = catalog.Money

// Input is everything policies can read about a call. The gateway fills it with values it has parsed itself; only Request and
// Resource.After are under the caller's control.
//
// Bodies are decoded JSON: map[string]any, []any, string, bool, nil, json.Number, and [operation.Deferred] for values that are decoded when a
// policy reads them. An Input and its values must not be modified during a decision.
type Input struct {
	// Request is the call as a v2 call.
	Request Request
	// Caller is the sender of the call.
	Caller Caller
	// Resource is the resource that the call is about.
	Resource Resource
	// Catalog is the organisation's price list, or nil if no list is recent enough to use.
	Catalog *catalog.Snapshot
	// Cost is the highest possible cost of the call.
	Cost Cost
	// Spend is the current usage and past spending.
	Spend Spend
	// Time is the time of the decision. It must not be zero.
	Time time.Time
}

// Request is the call as it would be sent to the platform.
type Request struct {
	// Operation is the operationId in the v2 API, or the operation of the run interface (see package operation).
	Operation string
	// Method and Path describe the v2 call. Path is in canonical form.
	Method, Path string
	// Params maps the names of path parameters to their decoded values.
	Params map[string]string
	// Query holds the parsed query parameters.
	Query map[string]any
	// Body is the body with the platform's defaults, or nil.
	Body any
	// Unknown holds the members of the caller's body that the API's description does not contain. They are sent to the platform.
	Unknown map[string]any
	// Labels are the labels of the new resource.
	Labels map[string]string
	// Dialect is the API the caller used: v2, v1, graphql, run, or chat.
	Dialect string
}

// Caller is the sender of a call.
type Caller struct {
	// Org, Team and Key identify the caller. Key is the public identifier of the key, never the secret.
	Org, Team, Key string
	// Roles are the caller's roles: viewer, operator, admin, or roles defined by the organisation.
	Roles []string
}

// Resource is the resource that a call is about.
type Resource struct {
	// Current is the current resource. It is nil for a create, or if it was not read.
	Current any
	// After is the resulting resource: the body merged with its template for a create, the merged resource for an update, the
	// resource itself for a start. It is required for every operation whose Verb.HasResultState.
	After any
	// Template is the template named by the body, or nil.
	Template *Template
	// Owner is the creator of the resource, or nil if unknown.
	Owner *Owner
}

// Owner is the owner of a resource. Both fields are "" if the organisation itself owns it.
type Owner struct{ Team, Key string }

// Template describes a template that a call names.
type Template struct {
	// ID is the ID of the template.
	ID string
	// Own is set if the template belongs to the account, Public if it is in the public catalog.
	Own, Public bool
	// Record is the platform's record of the template.
	Record any
}

// Spend holds the current usage of an organisation, a team and a key.
type Spend struct {
	// Known is false if the ledger is unavailable or not enabled, and for calls that change nothing. Then every amount is
	// meaningless.
	Known bool
	// Org, Team and Key are the accounts that the call is charged to.
	Org, Team, Key Account
}

// Account is the usage of one account of the ledger.
type Account struct {
	// Burn is the cost of everything running or reserved, in USD per hour. The other fields are the USD spent in each current
	// period and in total.
	Burn, Day, Week, Month, Quarter, Total Money
	// BurnLimit and the other fields are the budgets; nil means no limit.
	BurnLimit, DayLimit, WeekLimit, MonthLimit, QuarterLimit, TotalLimit *Money
	// GPUs, Pods, Workers, VolumeGB and Sandboxes count resources that are running or may run.
	GPUs, Pods, Workers, VolumeGB, Sandboxes int64
}

// ErrInput is wrapped by errors about an invalid Input.
var ErrInput = errors.New("invalid policy input")

// Document returns the input in the form policies see it. It determines the effect of the call and returns an error if a member
// that policies rely on is missing.
func (in *Input) Document() (*Document, error) {
	row, ok := operation.Lookup(in.Request.Operation)
	if !ok {
		return nil, fmt.Errorf("%w: unknown operation %q", ErrInput, in.Request.Operation)
	}
	verb := row.EffectiveVerb(in.Request.Body)
	if verb == "" {
		return nil, fmt.Errorf("%w: action of %s is unknown", ErrInput, in.Request.Operation)
	}
	if _, isObject := in.Resource.After.(map[string]any); verb.HasResultState() && !isObject {
		return nil, fmt.Errorf("%w: resulting state of %s is missing", ErrInput, in.Request.Operation)
	}
	if in.Time.IsZero() {
		return nil, fmt.Errorf("%w: time is not set", ErrInput)
	}
	return &Document{in: in, kind: row.Kind, verb: verb}, nil
}
