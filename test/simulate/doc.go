// Package simulate runs the rate limiter of 50 gateways in three regions on a virtual
// clock, with a store as far away as the regions are, and tells what ways of counting
// cost and lose there. The limiter is the one that gateways run, background work
// included; only the store and the time are not real. There is no code here but tests.
//
// Make simulate runs it whole and writes docs/regions.svg, which docs/ratelimits.md shows;
// without -write, the test runs a small one.
package simulate
