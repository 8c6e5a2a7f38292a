// Package operator implements the endpoints for operators that concern the whole gateway: the status of policy engines, drafts of
// policies, quotas and counters, the gateways that share a store, earlier configurations, the predicted outcome of a request, and
// an overview. It also validates a configuration before it is used.
package operator
