package explain

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
)

// Report describes an exchange, or the prediction for a request, stage by stage.
type Report struct {
	// Dry reports that the verdict is a prediction and nothing was sent. DecisionID and RequestID are set only if a caller made the dry
	// run.
	Dry        bool      `json:"dry"`
	DecisionID string    `json:"decisionId,omitempty"`
	RequestID  string    `json:"requestId,omitempty"`
	Time       time.Time `json:"time"`
	// Revision is the revision of the configuration.
	Revision  string  `json:"revision"`
	Method    string  `json:"method"`
	Path      string  `json:"path"`
	Dialect   string  `json:"dialect"`
	Operation string  `json:"operation"`
	Caller    Caller  `json:"caller"`
	Verdict   Verdict `json:"verdict"`
	// Status is the status of the response. For a dry run it is set only if the gateway refuses the request.
	Status int `json:"status,omitempty"`
	// Refusal is the kind of problem, Stage is the stage that refused the request, and Detail is the text sent to the
	// caller.
	Refusal string `json:"refusal,omitempty"`
	Stage   string `json:"stage,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Approval is the ID of the request for approval created by the refusal.
	Approval string `json:"approval,omitempty"`
	// Own is the action of the gateway itself, or nil for an exchange.
	Own *OwnAction `json:"own,omitempty"`
	PolicyNames
	// Resource is the ID of the resource that the request created or named.
	Resource string `json:"resource,omitempty"`
	// DurationMs is the time until the response was complete, and PlatformMs the time that the platform took, both in milliseconds. Both
	// are 0 for dry runs and for actions of the gateway itself.
	DurationMs float64 `json:"durationMs,omitempty"`
	PlatformMs float64 `json:"platformMs,omitempty"`
	// Stages are the stages of the request, in order.
	Stages []Stage `json:"stages"`
	// Calls are the v2 calls of the request. For a v2 request, this is the request itself.
	Calls []Call `json:"calls"`
	// ToPass lists what must change for the request to pass.
	ToPass []string `json:"toPass,omitempty"`
}

// IsRun reports whether the request belongs to the run interface.
func (x *Report) IsRun() bool { return route.Dialect(x.Dialect).IsRun() }

// OwnAction is an action of the gateway itself.
type OwnAction struct {
	Resource string `json:"resource,omitempty"`
	// Did describes the action and its reason.
	Did string `json:"did"`
}

// PolicyNames lists the policies with results.
type PolicyNames struct {
	Denied   []string `json:"denied,omitempty"`
	Warned   []string `json:"warned,omitempty"`
	Shadowed []string `json:"shadowed,omitempty"`
	// Excepted lists the exceptions that permitted a denied call. Changed lists changes of the body as "policy: pointer".
	Excepted []string `json:"excepted,omitempty"`
	Changed  []string `json:"changed,omitempty"`
}

// Verdict is the result of a request.
type Verdict string

// The verdicts. Unknown is used for dry runs that could not read the decisive facts.
const (
	Allowed Verdict = "allowed"
	Refused Verdict = "refused"
	Unknown Verdict = "unknown"
)

// Caller is the caller of the request.
type Caller struct {
	Org   string   `json:"org"`
	Team  string   `json:"team,omitempty"`
	Key   string   `json:"key,omitempty"`
	Roles []string `json:"roles,omitempty"`
}

func callerOf(c *identity.Caller) Caller {
	return Caller{Org: c.Org, Team: c.Team, Key: c.Key, Roles: c.RoleNames()}
}

// Stage is one stage with its findings.
type Stage struct {
	Name string `json:"name"`
	// Result is passed, refused, answers or unknown.
	Result string   `json:"result"`
	Notes  []string `json:"notes,omitempty"`
	// StartMs is the start time of the stage relative to the first stage of the request or call, and Ms is its duration, in milliseconds.
	// The last stage includes the response phase. Both are absent in dry runs.
	StartMs float64 `json:"startMs,omitempty"`
	Ms      float64 `json:"ms,omitempty"`
}

// Results of a stage.
const (
	resultPassed  = "passed"
	resultRefused = "refused"
	resultUnknown = "unknown"
	resultAnswers = "answers"
)

// Call is a call of v2 or of the run interface.
type Call struct {
	Operation string `json:"operation"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	// Body is the v2 body, set only for dry runs. It is nil for runs.
	Body any `json:"body,omitempty"`
	Outcome
	Stages []Stage `json:"stages"`
	// PolicyRevision is the revision of the policies, and Policies holds their results.
	PolicyRevision string   `json:"policyRevision,omitempty"`
	Policies       []Policy `json:"policies,omitempty"`
	// USDPerHour is the maximum cost, and Basis explains how it was computed.
	USDPerHour string `json:"usdPerHour,omitempty"`
	Basis      string `json:"basis,omitempty"`
	// Budgets lists the budgets that the call was checked against, in their state before
	// the call.
	Budgets []BudgetCheck `json:"budgets,omitempty"`
}

// Policy is the result of one policy.
type Policy struct {
	Policy string `json:"policy"`
	// Verdict is denies, warns, would deny, excepted, changes, passes, or does not apply.
	Verdict string `json:"verdict"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
	Doc     string `json:"doc,omitempty"`
}

// Verdicts of a policy.
const (
	verdictDenies       = "denies"
	verdictWarns        = "warns"
	verdictWouldDeny    = "would deny"
	verdictExcepted     = "excepted"
	verdictChanges      = "changes"
	verdictPasses       = "passes"
	verdictDoesNotApply = "does not apply"
)
