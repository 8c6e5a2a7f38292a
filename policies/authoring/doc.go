// Package authoring has the tools of `tollgate policy` for people who write Rego. They read and report; only [Format] writes files.
//
// [Check] finds the faults of a directory: files that do not parse, do not compile strictly, do not fit the schema of the input or are not
// formatted, tests included, and rules that the engine would refuse. Every fault is a *section.Error with its file, row and column.
//
// [Run] runs the tests of a directory as `opa test` does, compiled as the engine compiles and with the library loaded, and measures their
// coverage. Tests are rules named test_... in files named *_test.rego; they may use the inputs of data.tollgate.testing.
//
// [Library], [OwnPolicies] and [Export] write the reference pages of policies in Markdown.
package authoring
