// Package store keeps the gateway's shared state in Redis. All keys of an organisation are in one slot of a Redis Cluster, and times
// are measured by the clock of the Redis server.
//
// A [Store] has records of one type, as JSON, each for some time, which change by compare-and-swap only: if several writers replace the
// value that they have read, one succeeds. Records may be in indexes, which can bound their number.
//
// A [Journal] has the latest entries of one kind, bounded in number and age, for people to read: an entry whose write was not answered
// may be missing. With [Journal.Claim] one of several gateways does work that must be done once.
//
// A client of the group commit sends the scripts, reads of keys and pipelines that wait for Redis at the same instant in one write. The
// AutoPipeline of go-redis 9.23 does the same, is marked experimental, and takes 1.1 to 1.7 times the processor time with 1 to 256 callers.
package store
