// Package store keeps the gateway's shared state in Redis. All keys of an organisation are in one slot of a Redis Cluster, and times
// are measured by the clock of the Redis server.
//
// A [Store] has records of one type, as JSON, each for some time, which change by compare-and-swap only: if several writers replace the
// value that they have read, one succeeds. Records may be in indexes, which can bound their number.
//
// A [Replica] is a gateway's copy of records that all gateways share, such as keys made at run time. Changes are announced, so that a quiet
// look costs one command, and records that Redis has lost are written back.
//
// A [CappedLog] has the latest lines of lists, bounded in number and age: a line whose write was not answered may be missing. With
// [CappedLog.Claim] one of several gateways does work that must be done once.
//
// [Hashes] has texts and counts by name and field, such as the counts of an hour. A [Registry] lists the gateways that live, each with a text.
//
// A client of the group commit sends the scripts, reads of keys and pipelines that wait for Redis at the same instant in one write. The
// AutoPipeline of go-redis 9.23 does the same, is marked experimental, and takes 1.1 to 1.7 times the processor time with 1 to 256 callers.
package store
