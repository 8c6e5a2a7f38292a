// Package reference contains the API reference that the gateway serves at /docs: a page that shows the API descriptions of v2 and v1 in
// Swagger UI, and the GraphQL schema in GraphiQL. All files are embedded, and the page sends requests only to the gateway that serves it.
// Calls from the page use a key that the reader enters. The page keeps the key only in memory.
//
// The page also shows the permissions and limits of this key, which it reads at AccessPath as an [Access]. The script .ci/vendor-reference
// updates the embedded viewers.
//
// The package provides only files and types. The gateway serves the files, identifies the caller and supplies the Access.
package reference
