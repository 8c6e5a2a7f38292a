// Package reference holds the API reference that callers browse at /docs: a page
// with the v2 and v1 descriptions in Swagger UI and the GraphQL schema in GraphiQL,
// all of it embedded. The page makes no request but to the gateway that serves it. Calls
// tried from it carry the key its reader types in, which stays in the page's memory.
//
// The page shows the gateway's answer at AccessPath to that key, an [Access],
// beside the operations. The viewers are vendored by .ci/vendor-reference.
//
// The package makes files and shapes. Routes, callers and figures are the gateway's.
package reference
