// Package policyconfig defines the configuration of policies and of the decision log as data. It does not load, compile or evaluate
// anything. Settings that require an engine to check, such as the parameters of a policy, are checked by packages policies and
// policies/decisionlog.
package policyconfig
