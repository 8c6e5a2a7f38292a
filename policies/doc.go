// Package policies decides whether an organisation allows a call. It embeds
// OPA: a library of policies written in Rego that an organisation switches on
// with parameters, and the organisation's own Rego.
//
// It does not read requests, prices or resources itself: the caller hands it
// an Input, made of parsed values only, and gets a Decision. A refusal is a
// Decision with Deny; an error means that no decision could be had, and the
// caller must refuse the call.
//
// Invariants:
//   - Every failure (a built-in error, a deadline, an undefined or
//     mistyped result, a panic) is an error, never an empty Decision.
//   - Every organisation has a compiler of its own; no policy can see another
//     organisation's parameters or data.
//   - A Decision is made by exactly one compiled state, named by its Revision.
//   - Policies have no network, no clock and no randomness: equal inputs get
//     equal decisions.
//
// An entrypoint is generated per organisation that calls the library's
// functions with the configured parameters as constants:
//
//	engine, err := policies.NewEngine(section.DefaultLimits(), map[string]policies.Config{
//		"acme": {Policies: []policies.Entry{{
//			Policy: "gpu_allow_list",
//			Params: map[string]any{"gpus": []any{"NVIDIA L4"}},
//		}}},
//	}, policies.Deps{})
//	...
//	decision, err := engine.Decide(ctx, "acme", input)
package policies
