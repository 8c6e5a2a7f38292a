package reference

import "time"

// Access holds a caller's rights, as the page shows them.
type Access struct {
	Org   string   `json:"org"`
	Team  string   `json:"team,omitempty"`
	Key   string   `json:"key"`
	Roles []string `json:"roles,omitempty"`
	// Limits are the windows the caller is counted in.
	Limits []Limit `json:"limits"`
	// Budgets are the ceilings that the caller's calls are held against.
	Budgets []Budget `json:"budgets"`
	// Policies are those in force for this caller, in the order they are
	// configured.
	Policies []Policy `json:"policies"`
	// Operations are those of v2.
	Operations []Operation `json:"operations"`
	// Prices are those of one GPU, an hour; empty while the price list is away.
	Prices []Price `json:"prices"`
}

// Limit is one window of one scope.
type Limit struct {
	Scope  string `json:"scope"`
	Window string `json:"window"`
	Limit  int64  `json:"limit"`
	// Remaining is absent while the shared store is away.
	Remaining *int64 `json:"remaining,omitempty"`
	// ResetSeconds is how long until the window resets.
	ResetSeconds int64 `json:"resetSeconds"`
}

// Budget is one ceiling of one scope, in USD or a count.
type Budget struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
	Limit string `json:"limit"`
	// Used, Reserved and Left are empty while the ledger cannot be asked. Left is the
	// amount that calls may still take.
	Used     string `json:"used,omitempty"`
	Reserved string `json:"reserved,omitempty"`
	Left     string `json:"left,omitempty"`
	// Ends is when the period of the budget ends, absent for a budget without a period.
	Ends *time.Time `json:"ends,omitempty"`
}

// Policy is one entry of the organisation's policies.
type Policy struct {
	Name string `json:"name"`
	// Mode is enforce, warn or shadow.
	Mode string `json:"mode"`
	// Title is the subject of the policy; empty for policies of the
	// organisation's own.
	Title  string         `json:"title,omitempty"`
	Params map[string]any `json:"params,omitempty"`
}

// Operation is the verdict of the policies on one operation for the caller, for
// any content of the call.
type Operation struct {
	ID string `json:"id"`
	// Refused are the reasons why no call of it can pass; empty when one may.
	Refused []string `json:"refused,omitempty"`
	// ConditionalPolicies are the policies that decide by the content of a call.
	ConditionalPolicies []string `json:"conditionalPolicies,omitempty"`
}

// Price is the cost of one GPU of a type for an hour, in US dollars as a decimal string;
// empty where it is not offered.
type Price struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Secure    string `json:"secure,omitempty"`
	Community string `json:"community,omitempty"`
	// SecureRefused and CommunityRefused are the reasons why no pod with one such GPU
	// passes the policies, with any other content; empty when one may.
	SecureRefused    []string `json:"secureRefused,omitempty"`
	CommunityRefused []string `json:"communityRefused,omitempty"`
}
