// Package journal keeps the latest entries of a sort in Redis, for people to read: a [Journal] is bounded in number and in time, and one
// entry whose write was not answered may be there or not. With [Journal.Claim] one of several gateways does what must be done once.
package journal
