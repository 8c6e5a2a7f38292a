// Package graphql answers the platform's retired GraphQL interface by calls of
// its v2 API.
//
// A request goes through three steps. prepare reads the document within fixed
// limits, validates it against the schema in schema.graphql, and plans it:
// fragments expanded, directives decided, arguments coerced. Whatever is wrong
// with a request is found there and costs no v2 call. execute then runs the
// resolvers of the fields that were selected, and writes the answer in the
// order of the document. A resolver reaches v2 through its exchange and by no
// other way, so every call passes the gateway's chain and is counted; within a
// request each resource is read once.
//
// The package keeps the texts and codes legacy clients compare, and is as
// lenient as the retired service was about what they send; docs/graphql.md
// lists both. It is no general GraphQL server: types are objects, scalars and
// inputs only, and every position is nullable.
//
//	api, err := graphql.New(graphql.DefaultConfig(), translate.Deps{Store: store})
//	...
//	out := api.Serve(ctx, in, caller)
package graphql
