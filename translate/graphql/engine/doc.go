// Package engine executes GraphQL documents (specification of September 2025) with a schema and resolvers for its fields.
//
// [Engine.Prepare] parses a document within fixed limits, validates it, and plans its execution: it expands fragments,
// evaluates directives and coerces arguments. It reports all errors in a request before any resolver runs.
// [Operation.Execute] then runs the resolvers of the selected fields and writes the members of "data" in document order.
//
// Parsing and validation use github.com/vektah/gqlparser; this package adds limits, coercion, execution and introspection. It is not a
// general-purpose GraphQL server: it only supports objects, scalars and inputs, every position is nullable, and it is lenient about
// variable types because existing clients need that. A scalar whose description is a list of upper-case words is a lenient enumeration: its
// values may be literals or strings, and "" means absent.
package engine
