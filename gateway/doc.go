// Package gateway assembles tollgate: it compiles a configuration into a chain, manages the listeners and their life cycle, and replaces
// the configuration while requests are running.
//
// A compiled configuration is one immutable value in an atomic pointer. A request loads it once, so it never sees parts of two
// configurations. A configuration that fails to compile never replaces one that compiled.
//
// The order of the chain is in chainOrder. features.go lists the features that supply its stages, routes and tasks.
package gateway
