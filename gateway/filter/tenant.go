package filter

import (
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/translate/brownout"
)

// Tenant is what the configuration says of one organisation, in the form in which
// filters ask for it. It is immutable. The zero value limits nothing.
type Tenant struct {
	// ID is the organisation's id.
	ID string
	// Scopes holds the scopes a caller is counted in, by key id.
	Scopes map[string][]ratelimit.Scope
	// Failure overrides, by class of call, what happens while the shared store is
	// away.
	Failure map[ratelimit.Class]ratelimit.Failure
	// Classes holds the quotas an operation has beside the caller's, by its id.
	Classes map[string][]Class
	// Weights holds the weights of teams, by id; absent ones weigh one.
	Weights map[string]int64
	// Brownouts holds the schedules by which legacy calls are refused.
	Brownouts map[route.Dialect]*brownout.Schedule
	// ChangesBodies says that its policies may change bodies.
	ChangesBodies bool
}
