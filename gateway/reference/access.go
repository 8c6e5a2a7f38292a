package reference

import "time"

// Access describes the permissions and limits of a caller. The reference page shows them.
type Access struct {
	Org   string   `json:"org"`
	Team  string   `json:"team,omitempty"`
	Key   string   `json:"key"`
	Roles []string `json:"roles,omitempty"`
	// Limits lists the rate limit windows that apply to the caller.
	Limits []Limit `json:"limits"`
	// Budgets lists the budgets that apply to the caller's calls.
	Budgets []Budget `json:"budgets"`
	// Policies lists the policies that apply to the caller, in the order of the configuration.
	Policies []Policy `json:"policies"`
	// Operations lists all v2 operations.
	Operations []Operation `json:"operations"`
	// Prices lists the hourly prices of GPU types. It is empty while the price list is unavailable.
	Prices []Price `json:"prices"`
}

// Limit is the state of one rate limit window of a scope (organisation, team or key).
type Limit struct {
	Scope  string `json:"scope"`
	Window string `json:"window"`
	Limit  int64  `json:"limit"`
	// Remaining is the number of calls left in the window. It is absent while the shared store is unavailable.
	Remaining *int64 `json:"remaining,omitempty"`
	// ResetSeconds is the number of seconds until the window resets.
	ResetSeconds int64 `json:"resetSeconds"`
}

// Budget is the state of one budget of a scope (organisation, team or key), in USD or as a count.
type Budget struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
	Limit string `json:"limit"`
	// Used is the amount that is used, Reserved is the amount reserved for calls in progress, and Left is the amount that further calls may
	// use. They are empty while the ledger is unavailable.
	Used     string `json:"used,omitempty"`
	Reserved string `json:"reserved,omitempty"`
	Left     string `json:"left,omitempty"`
	// Ends is the end of the budget's period. It is absent for a budget without a period.
	Ends *time.Time `json:"ends,omitempty"`
}

// Policy is a configured policy of the organisation.
type Policy struct {
	Name string `json:"name"`
	// Mode is "enforce", "warn" or "shadow".
	Mode string `json:"mode"`
	// Title is the title of a built-in policy. It is empty for the organisation's own policies.
	Title  string         `json:"title,omitempty"`
	Params map[string]any `json:"params,omitempty"`
}

// Operation describes whether the policies allow the caller to use an operation, as far as this does not depend on the content of the call.
type Operation struct {
	ID string `json:"id"`
	// Refused lists the reasons why policies refuse all calls of the operation. It is empty if some calls may be allowed.
	Refused []string `json:"refused,omitempty"`
	// ConditionalPolicies lists the policies whose decision depends on the content of the call.
	ConditionalPolicies []string `json:"conditionalPolicies,omitempty"`
}

// Price holds the hourly prices of one GPU of a type, in USD as decimal strings. A price is empty if the type is not offered.
type Price struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Secure    string `json:"secure,omitempty"`
	Community string `json:"community,omitempty"`
	// SecureRefused and CommunityRefused list the reasons why policies refuse all pods with one GPU of the type in the secure or community
	// cloud. A list is empty if some pods may be allowed.
	SecureRefused    []string `json:"secureRefused,omitempty"`
	CommunityRefused []string `json:"communityRefused,omitempty"`
}
