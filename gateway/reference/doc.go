// Package reference contains the API reference that callers browse at /docs: a page that shows the v2 and v1 descriptions
// in Swagger UI and the GraphQL schema in GraphiQL. Everything is embedded, and the page sends requests only to the
// gateway that serves it. Calls from the page use the key that the reader types in, which stays in the page's memory.
//
// The page also shows the gateway's response at AccessPath for that key, an [Access]. The script .ci/vendor-reference
// vendors the viewers.
//
// The package provides files and types only. The gateway supplies routes, callers and data.
package reference
