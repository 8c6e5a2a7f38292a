package reference

import "time"

// Access holds the permissions and limits of a caller, as shown on the reference page.
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
	// Operations lists the v2 operations.
	Operations []Operation `json:"operations"`
	// Prices lists hourly prices of one GPU. It is empty while the price list is unavailable.
	Prices []Price `json:"prices"`
}

// Limit is the state of one rate limit window of one scope.
type Limit struct {
	Scope  string `json:"scope"`
	Window string `json:"window"`
	Limit  int64  `json:"limit"`
	// Remaining is absent while the shared store is unavailable.
	Remaining *int64 `json:"remaining,omitempty"`
	// ResetSeconds is the number of seconds until the window resets.
	ResetSeconds int64 `json:"resetSeconds"`
}

// Budget is one budget of one scope, in USD or as a count.
type Budget struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
	Limit string `json:"limit"`
	// Used, Reserved and Left are empty while the ledger is unavailable. Left is the amount that further calls may use.
	Used     string `json:"used,omitempty"`
	Reserved string `json:"reserved,omitempty"`
	Left     string `json:"left,omitempty"`
	// Ends is the end of the budget's period. It is absent for a budget without a period.
	Ends *time.Time `json:"ends,omitempty"`
}

// Policy is one of the organisation's configured policies.
type Policy struct {
	Name string `json:"name"`
	// Mode is enforce, warn or shadow.
	Mode string `json:"mode"`
	// Title is the title of the policy. It is empty for the organisation's own policies.
	Title  string         `json:"title,omitempty"`
	Params map[string]any `json:"params,omitempty"`
}

// Operation reports whether the policies allow the caller to use an operation, whatever the body of the request contains.
type Operation struct {
	ID string `json:"id"`
	// Refused lists the reasons why every call is refused. It is empty if a call may be allowed.
	Refused []string `json:"refused,omitempty"`
	// ConditionalPolicies lists the policies whose decision depends on the content of the call.
	ConditionalPolicies []string `json:"conditionalPolicies,omitempty"`
}

// Price is the hourly price of one GPU of a type, in USD as a decimal string. It is empty where the type is not offered.
type Price struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Secure    string `json:"secure,omitempty"`
	Community string `json:"community,omitempty"`
	// SecureRefused and CommunityRefused list the reasons why policies refuse every pod with one such GPU. They are empty
	// if a pod may be allowed.
	SecureRefused    []string `json:"secureRefused,omitempty"`
	CommunityRefused []string `json:"communityRefused,omitempty"`
}
