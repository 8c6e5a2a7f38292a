// Package operator implements the endpoints for operators that concern the whole gateway: the status of policy engines, drafts of policies,
// quotas and counters, the gateways that share a store, earlier configurations, the predicted outcome of a request, a search, the GPUs that
// fit into a budget, and an overview. It also validates a configuration before it is used ([Validator]), and creates the policy engine
// ([EngineFactory]) and the rate limiters with their metrics ([Limiters], [Instruments]).
//
// Package gateway creates the types of this package and adds their Endpoints to the admin listener. The endpoints of a zero value can be
// listed for the API reference, but cannot be called.
//
// The package keeps the state of the configuration in force ([GatewayStatus]), the engine in force ([EngineFactory]) and the state of the
// limiters in memory. It stores the announcements of the running gateways ([Fleet]) and the log of configurations that were in force
// ([Revisions]) in Redis, and bundles of policies without a configured file in a temporary directory.
package operator
