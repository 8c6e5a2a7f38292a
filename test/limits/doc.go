// Package limits tests the promises of rate limits to callers when several gateways share
// one Redis: real processes of the built command in front of the emulated platform, and
// gateways in this process whose clocks a test holds. There is no code here but tests.
package limits
