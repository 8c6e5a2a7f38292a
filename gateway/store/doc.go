// Package store keeps the gateway's shared state in Redis. All keys of an organisation are in one slot of a Redis Cluster. Times are
// measured by the clock of the Redis server.
//
// A [Store] contains JSON records of one type, optionally with an expiry time. Records are changed only by compare-and-swap: if several
// writers replace the same version, one succeeds. Records may be listed in indexes, which can limit their number.
//
// A [Replica] is a gateway's copy of records shared by all gateways, such as keys created at run time. Changes are announced, so that
// checking for changes costs one command. Records lost by Redis are written back.
//
// A [CappedLog] contains the latest lines of lists, limited by number and age. A line whose write was not confirmed may be missing.
// [CappedLog.Claim] lets exactly one of several gateways do a piece of work.
//
// [Hashes] contains strings and counters by name and field, such as hourly counts. A [Registry] lists the live gateways, with a text for
// each gateway.
//
// A [BatchClient] sends the scripts, key reads and pipelines that are waiting at the same moment in one write. The AutoPipeline of go-redis
// 9.23 does the same, but is marked experimental and uses 1.1 to 1.7 times as much processor time with 1 to 256 callers.
package store
