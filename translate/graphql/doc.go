// Package graphql answers the platform's retired GraphQL interface by calls of
// its v2 API.
//
// [github.com/tollgate-dev/tollgate/translate/graphql/engine] has the language;
// this package gives it the schema in schema.graphql and a resolver for each of
// its fields. Faults of a document are found before the first resolver runs
// and cost no v2 call. A resolver reaches v2 through its exchange
// and by no other way, so every call passes the gateway's chain and is counted;
// within a request each resource is read once.
//
// The package keeps the messages and codes legacy clients compare, and accepts
// bodies as leniently as the retired service did; docs/graphql.md lists
// both.
//
//	api, err := graphql.New(graphql.DefaultConfig(), translate.Deps{Store: store})
//	...
//	out := api.Serve(ctx, in, caller)
package graphql
