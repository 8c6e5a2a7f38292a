// Package operator answers operators' questions about the gateway as a whole: the status of its policy engines and drafts of policies,
// quotas and counts, the gateways that share a store, configurations that were in force, what a request would lead to, and what needs
// attention. It also checks a configuration before it is used.
package operator
