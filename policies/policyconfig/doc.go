// Package policyconfig is the configuration of policies and of the log of decisions, as data:
// nothing here loads, compiles or evaluates. What an engine alone can judge of it, such as
// the parameters of a policy, packages policies and policies/decisionlog judge.
package policyconfig
