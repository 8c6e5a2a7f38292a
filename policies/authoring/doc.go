// Package authoring implements the tools of `tollgate policy` for authors of Rego policies. They read and report; only [Format]
// writes files.
//
// [Check] reports the faults in a directory, tests included: files that cannot be parsed, do not compile in strict mode, do not
// match the schema of the input or are not formatted, and rules that the engine would reject. Every fault is a *policyconfig.Error
// with file, row and column.
//
// [Run] runs the tests of a directory like `opa test`, compiled as the engine compiles them and with the library loaded, and
// measures coverage. Tests are rules named test_... in files named *_test.rego; they may use the inputs of data.tollgate.testing.
//
// [Library], [OwnPolicies] and [Export] generate the reference pages of policies in Markdown.
package authoring
