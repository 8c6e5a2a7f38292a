// Package proof holds the tests of package ratelimit's promises: that
// several gateway processes over one Redis never admit more than a quota, through
// lost replies, slow and cut connections, restarts and crashes; that decisions
// are linearisable; and how many exchanges with the store they take, at scale in
// virtual time. It has no code of its own.
package proof
