// Package gateway assembles tollgate. It compiles a configuration into a chain of filters, opens and closes the listeners, and replaces the
// configuration while requests are running.
//
// A compiled configuration is an immutable value in an atomic pointer. Each request loads this value once, so that it never uses parts of
// two configurations. If a configuration fails to compile, the previous configuration stays in force.
//
// chainOrder returns the order of the stages in the chain. features.go lists the features that supply stages, routes and tasks.
package gateway
