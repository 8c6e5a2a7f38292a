package explain

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// Report describes stage by stage the course of an exchange, or the predicted course of
// a request.
type Report struct {
	// Dry says that the verdict is a prediction and nothing was sent. DecisionID and RequestID are set if a caller made the dry run, and empty if an
	// operator did.
	Dry        bool      `json:"dry"`
	DecisionID string    `json:"decisionId,omitempty"`
	RequestID  string    `json:"requestId,omitempty"`
	Time       time.Time `json:"time"`
	// Revision names the configuration.
	Revision  string  `json:"revision"`
	Method    string  `json:"method"`
	Path      string  `json:"path"`
	Dialect   string  `json:"dialect"`
	Operation string  `json:"operation"`
	Caller    Caller  `json:"caller"`
	Verdict   Verdict `json:"verdict"`
	// Status is the answer's. Of a dry run it is that of a refusal, and 0 when
	// the platform would have answered.
	Status int `json:"status,omitempty"`
	// Refusal is the kind of problem, Stage the stage that raised it, Detail what
	// the caller was told.
	Refusal string `json:"refusal,omitempty"`
	Stage   string `json:"stage,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Approval is the id of the request for approval that the refusal has become.
	Approval string `json:"approval,omitempty"`
	// OwnAction is an act of the gateway itself, nil of an exchange.
	Own *OwnAction `json:"own,omitempty"`
	PolicyNames
	// Stages are those of the request as a whole, in order.
	Stages []Stage `json:"stages"`
	// Calls are the v2 calls it became; of a v2 request, itself.
	Calls []Call `json:"calls"`
	// ToPass lists the changes that the request needs to pass.
	ToPass []string `json:"toPass,omitempty"`
}

// OwnAction is an act of the gateway itself.
type OwnAction struct {
	Resource string `json:"resource,omitempty"`
	// AddOwn describes the act and its reason, for people.
	Did string `json:"did"`
}

// PolicyNames names the policies that spoke.
type PolicyNames struct {
	Denied   []string `json:"denied,omitempty"`
	Warned   []string `json:"warned,omitempty"`
	Shadowed []string `json:"shadowed,omitempty"`
	// Excepted names the exceptions that lifted a denial, Changed the changes of
	// policies to the body, as "policy: pointer".
	Excepted []string `json:"excepted,omitempty"`
	Changed  []string `json:"changed,omitempty"`
}

// Verdict is how a request fares in the gateway.
type Verdict string

// The verdicts. Unknown is for a dry run that could not see the deciding facts.
const (
	Allowed Verdict = "allowed"
	Refused Verdict = "refused"
	Unknown Verdict = "unknown"
)

// Caller is who called, or is taken to.
type Caller struct {
	Org   string   `json:"org"`
	Team  string   `json:"team,omitempty"`
	Key   string   `json:"key,omitempty"`
	Roles []string `json:"roles,omitempty"`
}

func callerOf(c *identity.Caller) Caller {
	return Caller{Org: c.Org, Team: c.Team, Key: c.Key, Roles: c.RoleNames()}
}

// Stage is one stage and its findings.
type Stage struct {
	Name string `json:"name"`
	// Result is passed, refused, answers or unknown.
	Result string   `json:"result"`
	Notes  []string `json:"notes,omitempty"`
}

// Results of a stage.
const (
	resultPassed  = "passed"
	resultRefused = "refused"
	resultUnknown = "unknown"
	resultAnswers = "answers"
)

// Call is one call of v2 or of the run interface.
type Call struct {
	Operation string `json:"operation"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	// Body is the equivalent body of v2, of a dry run only; nil for a run.
	Body any `json:"body,omitempty"`
	// Verdict, Status, Refusal and Detail are as those of the request.
	Verdict Verdict `json:"verdict"`
	Status  int     `json:"status,omitempty"`
	Refusal string  `json:"refusal,omitempty"`
	Detail  string  `json:"detail,omitempty"`
	Stages  []Stage `json:"stages"`
	// PolicyRevision names the policies that decided, Policies their verdicts.
	PolicyRevision string   `json:"policyRevision,omitempty"`
	Policies       []Policy `json:"policies,omitempty"`
	// USDPerHour is the worst case of the cost, Basis how it came about.
	USDPerHour string `json:"usdPerHour,omitempty"`
	Basis      string `json:"basis,omitempty"`
}

// Policy is the verdict of one policy.
type Policy struct {
	Policy string `json:"policy"`
	// Verdict is denies, warns, would deny, excepted, changes, passes, or does
	// not apply.
	Verdict string `json:"verdict"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
	Doc     string `json:"doc,omitempty"`
}

// The verdicts of a policy.
const (
	verdictDenies       = "denies"
	verdictWarns        = "warns"
	verdictWouldDeny    = "would deny"
	verdictExcepted     = "excepted"
	verdictChanges      = "changes"
	verdictPasses       = "passes"
	verdictDoesNotApply = "does not apply"
)
