package approval

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// State is the state of an approval request.
type State string

// States.
const (
	// Pending requests wait for an operator's answer.
	Pending State = "pending"
	// Granted requests wait for the caller to repeat the call.
	Granted State = "granted"
	// Denied requests are not created again until they expire.
	Denied State = "denied"
	// Used grants have allowed a call.
	Used State = "used"
)

// Advice is the start of the sentence in a refusal that explains how to request approval.
const Advice = "; to request approval, "

// RequestTTL is how long a request waits for an answer, and how long it remains visible after it was denied or used.
const RequestTTL = 24 * time.Hour

// Limits of pending requests.
const (
	MaxPending       = 1000 // per organisation
	MaxPendingCaller = 50   // per key
)

// Unit is the unit of a price.
type Unit string

// Units.
const (
	PerHour Unit = "hour"
	PerRun  Unit = "run"
)

// Refusal is one reason why a call was refused.
type Refusal struct {
	// By names the policy ("price_ceiling") or the budget ("budget team research per_hour").
	By      string `json:"by"`
	Message string `json:"message"`
}

// Record is an approval request.
type Record struct {
	// ID identifies the request. A new request for the same call has another ID.
	ID    string `json:"id"`
	State State  `json:"state"`
	// Key and Team identify the caller.
	Key  string `json:"key"`
	Team string `json:"team,omitempty"`
	// Operation is the operationId. Call is the request line. Body is the body without secrets; it is omitted if it is too long.
	Operation string          `json:"operation"`
	Call      string          `json:"call"`
	Body      json.RawMessage `json:"body,omitempty"`
	// Summary describes the request, such as "3 x NVIDIA L4", or is "" if unknown.
	Summary string `json:"summary,omitempty"`
	// Refusals are the refusals that a grant overrides.
	Refusals []Refusal `json:"refusals"`
	// USD is the highest cost of the call in USD per Per, which is an hour or a run. It is "" if unknown.
	USD string `json:"usd"`
	Per Unit   `json:"per"`
	// Decision is the ID of the decision on the refused call.
	Decision string    `json:"decision"`
	Asked    time.Time `json:"asked"`
	// Until is the time when the record and an unused grant expire.
	Until time.Time `json:"until"`
	// Answer is the operator's answer, or nil.
	Answer *Answer `json:"answer,omitempty"`
	// UsedBy is the decision ID of the allowed call. Claim is unique for each use.
	UsedBy string `json:"usedBy,omitempty"`
	Claim  string `json:"claim,omitempty"`
}

// Answer is an operator's answer.
type Answer struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	// MaxUSD is the highest price of a granted call in USD per hour or run. "" allows a call with an unknown price.
	MaxUSD string `json:"maxUsd,omitempty"`
}

// AuditSubject implements audit.Subject. The summary contains the highest price that an approval permits.
func (r *Record) AuditSubject() (kind, id, summary string) {
	summary = cmp.Or(r.Summary, r.Call) + " for "
	if r.Team != "" {
		summary += "team " + r.Team
	} else {
		summary += "key " + r.Key
	}
	most := r.USD
	if r.Answer != nil {
		most = cmp.Or(r.Answer.MaxUSD, most)
	}
	if most != "" {
		summary += ", at most " + most + " USD per " + string(r.Per)
	}
	return "approval", r.ID, summary
}

// Covers reports whether the record covers all of the given refusals.
func (r *Record) Covers(refusals []Refusal) bool {
	for _, want := range refusals {
		if !slices.ContainsFunc(r.Refusals, func(have Refusal) bool { return have.By == want.By }) {
			return false
		}
	}
	return true
}

// RefusedBy returns the names of the policies and budgets that refused the call.
func (r *Record) RefusedBy() []string {
	by := make([]string, len(r.Refusals))
	for i, refusal := range r.Refusals {
		by[i] = refusal.By
	}
	return by
}

// List is a list of approval requests.
type List struct {
	Approvals []Record `json:"approvals"`
}
