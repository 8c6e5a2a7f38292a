package approval

import (
	"encoding/json"
	"slices"
	"time"
)

// State is how far a request for approval has come.
type State string

// The states.
const (
	// Pending requests wait for an operator.
	Pending State = "pending"
	// Granted requests wait for the call.
	Granted State = "granted"
	// Denied requests are not asked again until they end.
	Denied State = "denied"
	// Used grants let a call pass.
	Used State = "used"
)

// RequestTTL is how long a request waits for an operator, and how long it is shown after
// it was denied or used.
const RequestTTL = 24 * time.Hour

// Bounds of how many requests may be pending at once.
const (
	MaxPending       = 1000 // of an organisation
	MaxPendingCaller = 50   // of a key
)

// Unit is the unit of a price.
type Unit string

// The units.
const (
	PerHour Unit = "hour"
	PerRun  Unit = "run"
)

// Refusal is one reason why a call was refused.
type Refusal struct {
	// By names the policy, "price_ceiling", or the budget, "budget team research per_hour".
	By      string `json:"by"`
	Message string `json:"message"`
}

// Record is a request for approval.
type Record struct {
	// ID names it for people. A new request has another.
	ID    string `json:"id"`
	State State  `json:"state"`
	// Key and Team are the caller's.
	Key  string `json:"key"`
	Team string `json:"team,omitempty"`
	// Operation is the operationId, Call the request line, Body the body without
	// secrets, if it is not too long.
	Operation string          `json:"operation"`
	Call      string          `json:"call"`
	Body      json.RawMessage `json:"body,omitempty"`
	// Summary describes the request, such as "3 x NVIDIA L4", "" if that is not known.
	Summary string `json:"asks,omitempty"`
	// Refusals are the refusals that a grant lifts.
	Refusals []Refusal `json:"refusals"`
	// USD is the highest cost of the call, "" if that is not known: per hour, or of a run
	// as a whole.
	USD string `json:"usd"`
	Per Unit   `json:"per"`
	// Decision is that of the refused call.
	Decision string    `json:"decision"`
	Asked    time.Time `json:"asked"`
	// Until is when the record ends: an unused grant with it.
	Until time.Time `json:"until"`
	// Answer is the operator's, nil while there is none.
	Answer *Answer `json:"answer,omitempty"`
	// UsedBy is the decision of the call that passed; Claim makes each use unlike any
	// other.
	UsedBy string `json:"usedBy,omitempty"`
	Claim  string `json:"claim,omitempty"`
}

// Answer is an operator's answer.
type Answer struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	// MaxUSD bounds the price of a granted call, per hour or run; "" grants one whose
	// price is not known.
	MaxUSD string `json:"maxUsd,omitempty"`
}

// Covers reports whether the record is about all of some refusals.
func (r *Record) Covers(refusals []Refusal) bool {
	for _, want := range refusals {
		if !slices.ContainsFunc(r.Refusals, func(have Refusal) bool { return have.By == want.By }) {
			return false
		}
	}
	return true
}

// Sort puts the latest requests first.
func Sort(list []Record) {
	slices.SortFunc(list, func(a, b Record) int { return b.Asked.Compare(a.Asked) })
}

// List is a list of requests for approval.
type List struct {
	Approvals []Record `json:"approvals"`
}
