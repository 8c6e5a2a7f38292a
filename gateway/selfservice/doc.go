// Package selfservice lets callers, authenticated by their own key or token, read data about themselves: their identity, the remainder of
// their limits and budgets, their costs, their resources, the decisions on their calls, and their approval requests. Leads can also answer
// approval requests.
//
// A view is an endpoint of the admin API that is called with an [adminapi.Principal] for the caller's organisation and team. Its parameters
// org, team and key are set to the caller's own; callers cannot set them, because the routes of this package have no such parameters. A
// lead (a caller with the role [identity.RoleLead]) sees its whole team and may select one of its keys.
package selfservice
