// Package redisstore keeps the memory of the translators in Redis, shared by
// all gateways.
//
// A record is one string key with its time to live; beside it a sorted set for
// each account and kind holds the ids for listing, by when their records end.
// Both carry the same hash tag, so they live in one slot of a cluster. The set
// may name records that have ended: writing and listing take them off, and it
// ends with the last of them. No record is ever missing from its set.
package redisstore
