// Package selfservice answers callers, under their own key or token, about themselves: their identity, the rest of their limits and
// budgets, their spend, their resources, the decisions on their calls, and their requests for approval.
//
// A view of a caller is a row of the operators' listener, asked with a [row.Principal] of the caller's organisation and team, and with the
// parameters org, team and key set to the caller's own. A caller cannot name them: they are no parameters of these routes. A lead, the role
// of [identity.RoleLead], is asked about its team instead of its key, and may name a key of it.
package selfservice
