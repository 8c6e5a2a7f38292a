// Package engine executes GraphQL documents (specification of September 2025)
// against a schema and the resolvers of its fields.
//
// [Engine.Prepare] parses a document within fixed limits, validates it, and
// plans it: fragments expanded, directives decided, arguments coerced. Whatever
// is wrong with a request is found there, before any resolver runs.
// [Operation.Execute] then runs the resolvers of the selected fields and writes
// the members of "data" in the order of the document.
//
// The language is github.com/vektah/gqlparser's; this package adds limits,
// coercion, execution and introspection. It is no general server: types are
// objects, scalars and inputs only, every position is nullable, and it is as
// lenient about types of variables as clients in the field need. A scalar whose
// description is a list of upper-case words is a lenient enumeration of them:
// its values may be written as literals or strings, and "" means absent.
package engine
