// Package export reads what v1 told about an account while it was still there,
// and fills the translators' memory with it: v2 forgets which template an
// endpoint or a pod came from, the order of GPU types, readmes. Without it the
// answers about older resources are less exact, never wrong.
//
// An export is one JSON object whose members are v1's answers, unchanged:
//
//	{"endpoints": [...], "templates": [...], "pods": [...]}
//
// from GET /endpoints, GET /templates and GET /pods; each may be left out.
// Members of an entry that nothing is remembered of are ignored. An entry with
// a fault is left out and the fault says where it is; the others are taken.
//
// Importing adds to the gateway's memory and never replaces it, because the
// gateway's own memory is younger than any export. It may be repeated.
package export
