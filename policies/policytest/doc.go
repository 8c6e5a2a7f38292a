// Package policytest runs the tests of an organisation's own Rego as `opa test`
// would, compiled as the engine compiles (strictly, type-checked, without the
// built-in functions the engine does not have) and with the library loaded, and
// measures their coverage of the policies.
//
// Tests are rules named test_... in files named *_test.rego; they may use the
// inputs of data.tollgate.testing. It changes nothing and keeps nothing.
//
//	report, err := policytest.Run(ctx, "policies/acme", policytest.Options{})
//	if err == nil && !report.Passed() { ... }
package policytest
