// Package gateway assembles tollgate: it compiles a configuration into a
// chain, owns the listeners and their life cycle, and swaps one compiled
// configuration for another while requests run.
//
// A compiled configuration is one immutable value behind an atomic pointer. A
// request takes it once and keeps it to its end, so no request is ever judged
// by half of one configuration and half of another; a configuration that does
// not compile never replaces one that did.
//
// The order of the chain is written once, in chain.go; features.go lists the features that supply its stages, routes and tasks.
package gateway
