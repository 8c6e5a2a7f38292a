// Package graphql serves the platform's legacy GraphQL API with calls of its v2 API.
//
// [github.com/tollgate-dev/tollgate/translate/graphql/engine] implements the language. This package contains the schema (schema.graphql)
// and a resolver for each field of the schema. Errors in a document are found before the first resolver runs and cause no v2 call. A
// resolver makes v2 calls only through its exchange, so that every call passes through the gateway's filter chain and is counted. Within a
// request, each resource is read once.
//
// The package keeps the messages and codes that legacy clients compare, and accepts bodies as leniently as the original
// service; docs/graphql.md lists both.
//
//	api, err := graphql.New(graphql.DefaultConfig(), translate.Deps{Store: store})
//	...
//	out := api.Serve(ctx, in, caller)
package graphql
