// Package policies decides whether an organisation allows a call. It embeds OPA and evaluates two kinds of policies: library
// policies, which an organisation enables with parameters, and policies that the organisation writes itself in Rego.
//
// [NewEngine] compiles the policies of all organisations, and [Engine.Decide] evaluates them for one call. The gateway calls Decide in the
// stage filter.EvaluatePolicies and for explanations, [Validate], [Check] and [Warnings] when it reads a configuration, and [Source.Try]
// for drafts. An Engine holds in memory one compiled state for each organisation, which it replaces as a whole; it writes to the disk only
// the last valid bundle of an organisation, if a file is configured.
//
// The package does not read requests, prices or resources. Callers build an Input from parsed values and receive a Decision. A refusal is a
// Decision with a non-empty Deny; an error means that no decision could be made, and the caller must refuse the call.
//
// Invariants:
//   - Every failure (a built-in error, an exceeded deadline, an undefined or mistyped result, a panic) is an error,
//     never an empty Decision.
//   - Every organisation has its own compiler; no policy can read another organisation's parameters or data.
//   - Each Decision is made by exactly one compiled state, which its Revision identifies.
//   - Policies cannot access the network, the clock or a random source: equal inputs produce equal decisions.
//
// For each organisation, the package generates an entrypoint that calls the library's functions with the configured parameters as
// constants:
//
//	engine, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{
//		"acme": {Policies: []policies.Entry{{
//			Policy: "gpu_allow_list",
//			Params: map[string]any{"gpus": []any{"NVIDIA L4"}},
//		}}},
//	}, policies.Deps{})
//	...
//	decision, err := engine.Decide(ctx, "acme", input)
package policies
