// Package selfservice answers callers about themselves, authenticated by their own key or token: their identity, the remainder of
// their limits and budgets, their spend, their resources, the decisions on their calls, and their approval requests.
//
// A view is an endpoint of the admin API that is called with an [adminapi.Principal] for the caller's organisation and team, and
// with the parameters org, team and key set to the caller's own. Callers cannot set them: these routes have no such parameters. A
// lead (a caller with the role [identity.RoleLead]) sees its whole team and may select one of its keys.
package selfservice
