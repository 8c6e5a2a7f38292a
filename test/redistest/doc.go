// Package redistest starts real Redis servers for tests: on the loopback
// interface, on ports that were free, without persistence unless asked for,
// and gone when the test ends.
//
//	addr := redistest.Start(t)
//
// There are servers with TLS, clusters, and groups of a master and its replicas
// under a Sentinel. A [Relay] is a network that fails as a test wants.
//
// The program redis-server is looked up in PATH. If it is missing the test is
// skipped, unless the environment variable TOLLGATE_REQUIRE_REDIS is set, which
// makes that a failure.
package redistest
