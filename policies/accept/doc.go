// Package accept finds out quickly that a rule has nothing to say.
//
// Nearly all calls violate nothing, and a full evaluation spends most of its time on
// being able to say otherwise. OPA's planner makes a plan of the same Rego: functions of
// simple statements over local variables (package ir of OPA). This package turns a plan
// into closures, which work on the values of package ast by the built-in functions of
// topdown.
//
// It is no authority. It answers whether the value of a rule is the empty set or list;
// whatever else a rule says, an error, a conflict, something undefined, is left to the
// evaluation of the Rego, which words the refusal. The work of a run is bounded for every
// input: more is left to the evaluation, too. Regular expressions are matched by automata,
// some other functions without the call of topdown.
package accept
